//! The codes that open the page once, and the tokens for which they are traded.

use std::collections::VecDeque;

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::limits::{CODE_LIFETIME, CODES_MAX, TOKEN_IDLE, TOKENS_MAX};

/// 128 bits.
const CODE_BYTES: usize = 16;
const TOKEN_BYTES: usize = 32;

/// The valid codes and tokens. Both are kept as digests, so that comparing them reveals nothing.
#[derive(Debug, Default)]
pub(crate) struct Entrance {
    codes: Mutex<VecDeque<(Digest, Instant)>>,
    tokens: Mutex<Vec<Token>>,
}

type Digest = [u8; 32];

#[derive(Debug)]
struct Token {
    digest: Digest,
    used: Instant,
    /// Cancelled when the token ends, which ends its streams; cancelling it ends the token.
    gone: CancellationToken,
}

impl Entrance {
    /// Returns a new code, valid once and for a minute.
    pub(crate) fn new_code(&self) -> String {
        let code = random::<CODE_BYTES>();
        let mut codes = self.codes.lock();
        codes.push_back((digest(&code), Instant::now()));
        if codes.len() > CODES_MAX {
            codes.pop_front();
        }
        code
    }

    /// Returns a token for a code. `None` if the code is wrong, was used, or is too old.
    pub(crate) fn trade(&self, code: &str) -> Option<String> {
        let given = digest(code);
        let mut codes = self.codes.lock();
        codes.retain(|(_, since)| since.elapsed() < CODE_LIFETIME);
        let is_given = |(known, _): &(Digest, Instant)| bool::from(known.ct_eq(&given));
        let at = codes.iter().position(is_given)?;
        codes.remove(at);
        drop(codes);
        let token = random::<TOKEN_BYTES>();
        let mut tokens = self.tokens.lock();
        if tokens.len() >= TOKENS_MAX {
            let oldest = (0..tokens.len()).min_by_key(|at| tokens[*at].used);
            if let Some(at) = oldest {
                tokens.remove(at).gone.cancel();
            }
        }
        tokens.push(Token {
            digest: digest(&token),
            used: Instant::now(),
            gone: CancellationToken::new(),
        });
        Some(token)
    }

    /// Notes a use of a token. Returns the token's end, which may be cancelled to end it; `None` if it is
    /// not valid.
    pub(crate) fn admit(&self, token: &str) -> Option<CancellationToken> {
        let given = digest(token);
        let mut tokens = self.tokens.lock();
        tokens.retain(|it| {
            let is_valid = it.used.elapsed() < TOKEN_IDLE && !it.gone.is_cancelled();
            if !is_valid {
                it.gone.cancel();
            }
            is_valid
        });
        let mut found = None;
        for token in tokens.iter_mut() {
            if bool::from(token.digest.ct_eq(&given)) {
                token.used = Instant::now();
                found = Some(token.gone.clone());
            }
        }
        found
    }
}

fn random<const BYTES: usize>() -> String {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    hex::encode(bytes)
}

fn digest(text: &str) -> Digest {
    Sha256::digest(text.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_code_is_valid_once_and_for_a_minute() {
        let entrance = Entrance::default();
        let code = entrance.new_code();
        assert_eq!(code.len(), 32);
        assert_eq!(entrance.trade("00000000000000000000000000000000"), None);
        let token = entrance.trade(&code).unwrap();
        assert_eq!(entrance.trade(&code), None);
        assert!(entrance.admit(&token).is_some() && entrance.admit(&code).is_none());
        let late = entrance.new_code();
        advance(CODE_LIFETIME).await;
        assert_eq!(entrance.trade(&late), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_ends_when_it_is_not_used_or_ended() {
        let entrance = Entrance::default();
        let [first, second] = [0, 1].map(|_| entrance.trade(&entrance.new_code()).unwrap());
        let gone = entrance.admit(&second).unwrap();
        advance(TOKEN_IDLE / 2).await;
        assert!(entrance.admit(&first).is_some());
        advance(TOKEN_IDLE / 2).await;
        assert!(entrance.admit(&second).is_none() && gone.is_cancelled());
        let gone = entrance.admit(&first).unwrap();
        gone.cancel();
        assert!(entrance.admit(&first).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn the_token_that_was_used_least_recently_makes_room() {
        let entrance = Entrance::default();
        let mut tokens = Vec::new();
        for _ in 0..=TOKENS_MAX {
            advance(std::time::Duration::from_secs(1)).await;
            tokens.push(entrance.trade(&entrance.new_code()).unwrap());
        }
        let is_valid = |token: &String| entrance.admit(token).is_some();
        assert!(!is_valid(&tokens[0]) && tokens[1..].iter().all(is_valid));
    }
}
