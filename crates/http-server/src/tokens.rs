//! Bearer tokens: lookup of the holder in constant time, so that the time reveals nothing about a guess.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// The shortest accepted token, in characters: a shorter one could be guessed.
const TOKEN_CHARS_MIN: usize = 16;

/// The known tokens, as digests: all of one length, and without the secrets themselves.
#[derive(Clone, Default)]
pub(super) struct Tokens(Vec<(Arc<str>, [u8; 32])>);

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set()
            .entries(self.0.iter().map(|(name, _)| name))
            .finish()
    }
}

impl Tokens {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a token, or returns the mistake without repeating the token.
    pub(super) fn add(&mut self, name: &str, token: &str) -> Result<(), String> {
        let token = token.trim();
        if token.chars().count() < TOKEN_CHARS_MIN {
            return Err(format!(
                "the token `{name}` has fewer than {TOKEN_CHARS_MIN} characters: make one with \
                 `openssl rand -hex 32`"
            ));
        }
        if !token.chars().all(|c| c.is_ascii_graphic()) {
            return Err(format!(
                "the token `{name}` contains characters that a header cannot contain: use ASCII without spaces"
            ));
        }
        self.0.push((name.into(), digest(token)));
        Ok(())
    }

    /// Returns the name of this token. Every known token is compared to its last byte.
    pub(super) fn holder(&self, given: &str) -> Option<Arc<str>> {
        let given = digest(given);
        let mut holder = None;
        for (name, known) in &self.0 {
            if bool::from(known.ct_eq(&given)) {
                holder = Some(name);
            }
        }
        holder.cloned()
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::Tokens;

    #[test]
    fn each_token_has_its_holder_and_a_weak_one_is_refused() {
        let mut tokens = Tokens::default();
        tokens.add("laptop", "0123456789abcdef\n").unwrap();
        tokens.add("ci", "fedcba9876543210").unwrap();
        let holder = |token| tokens.holder(token).map(|name| name.to_string());
        assert_eq!(holder("0123456789abcdef").as_deref(), Some("laptop"));
        assert_eq!(holder("fedcba9876543210").as_deref(), Some("ci"));
        assert_eq!(holder("0123456789abcde"), None);
        let mut tokens = Tokens::default();
        let short = tokens.add("ci", "secret").unwrap_err();
        assert!(short.contains("`ci`") && !short.contains("secret"));
        assert!(tokens.add("ci", "with a space in it!").is_err());
    }
}
