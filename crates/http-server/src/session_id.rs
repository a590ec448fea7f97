//! The ids of sessions: random, with the announcement of their client, and signed, so that the next
//! process can verify the ids of this one.
//!
//! `RANDOM.NAME.TAG`, or `RANDOM.NAME.CAPABILITIES.TAG` for a client that can be asked questions, each
//! in base64url. The tag also covers the name of the token that began the session, which the id does
//! not contain.

use aws_lc_rs::hmac::{self, Context, HMAC_SHA256, Key};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use gateway::Announcement;
use subtle::ConstantTimeEq as _;

use crate::session_key::KEY_BYTES;

const RANDOM_BYTES: usize = 16;

/// The length to which HMAC-SHA256 is truncated; the rest cannot be guessed.
const TAG_BYTES: usize = 16;

/// The longest id that is parsed: a name has 100 characters of up to 4 bytes.
const ID_CHARS_MAX: usize = 1_024;

/// The prefix of the signed data: the same key signs nothing else.
const PURPOSE: &[u8] = b"session 1\0";
const PURPOSE_WITH_CAPABILITIES: &[u8] = b"session 2\0";

/// The signature of an id.
pub(super) type Tag = [u8; TAG_BYTES];

/// Creates ids, and verifies those that were made with its key.
#[derive(Debug)]
pub(super) struct Signer(Key);

/// The content of an id that we signed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Signed {
    pub(super) announced: Announcement,
    pub(super) tag: Tag,
}

impl Signer {
    pub(super) fn new(key: &[u8; KEY_BYTES]) -> Self {
        Self(Key::new(HMAC_SHA256, key))
    }

    /// Creates an id that cannot be guessed, for a client with this announcement, admitted by this
    /// token.
    pub(super) fn make_id(&self, announced: &Announcement, token: Option<&str>) -> String {
        let mut random = [0; RANDOM_BYTES];
        getrandom::fill(&mut random).expect("the system has randomness");
        let name = announced.name.as_deref().unwrap_or_default();
        let capabilities = announced.capabilities.as_str();
        let tag = self.sign(&random, [name.as_bytes(), capabilities.as_bytes()], token);
        let parts = [&random, name.as_bytes(), capabilities.as_bytes(), &tag];
        let is_said = |(at, part): &(usize, &[u8])| *at != 2 || !part.is_empty();
        let parts = parts.into_iter().enumerate().filter(is_said);
        let parts: Vec<String> = parts.map(|(_, part)| BASE64.encode(part)).collect();
        parts.join(".")
    }

    /// Verifies an id; `None` if we did not make it for a client with this token.
    pub(super) fn read(&self, id: &str, token: Option<&str>) -> Option<Signed> {
        if id.len() > ID_CHARS_MAX {
            return None;
        }
        let parts = id.split('.').map(|part| BASE64.decode(part).ok());
        let parts: Vec<Vec<u8>> = parts.collect::<Option<_>>()?;
        let (random, name, capabilities, tag) = match &parts[..] {
            [random, name, tag] => (random, name, &[][..], tag),
            [random, name, capabilities, tag] if !capabilities.is_empty() => {
                (random, name, &capabilities[..], tag)
            }
            _ => return None,
        };
        let random: [u8; RANDOM_BYTES] = random[..].try_into().ok()?;
        let tag: Tag = tag[..].try_into().ok()?;
        if !bool::from(self.sign(&random, [name, capabilities], token).ct_eq(&tag)) {
            return None;
        }
        let name = String::from_utf8(name.clone()).ok()?;
        let announced = Announcement {
            name: (!name.is_empty()).then_some(name),
            capabilities: String::from_utf8(capabilities.to_vec()).ok()?,
        };
        Some(Signed { announced, tag })
    }

    fn sign(
        &self,
        random: &[u8; RANDOM_BYTES],
        [name, capabilities]: [&[u8]; 2],
        token: Option<&str>,
    ) -> Tag {
        let mut signing = Context::with_key(&self.0);
        if capabilities.is_empty() {
            signing.update(PURPOSE);
        } else {
            signing.update(PURPOSE_WITH_CAPABILITIES);
            signing.update(&(capabilities.len() as u64).to_be_bytes());
            signing.update(capabilities);
        }
        signing.update(random);
        signing.update(&(name.len() as u64).to_be_bytes());
        signing.update(name);
        signing.update(&[u8::from(token.is_some())]);
        signing.update(token.unwrap_or_default().as_bytes());
        let whole: hmac::Tag = signing.sign();
        let mut tag = [0; TAG_BYTES];
        tag.copy_from_slice(&whole.as_ref()[..TAG_BYTES]);
        tag
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; KEY_BYTES] = [7; KEY_BYTES];

    fn announced(name: Option<&str>, capabilities: &str) -> Announcement {
        Announcement {
            name: name.map(str::to_owned),
            capabilities: capabilities.to_owned(),
        }
    }

    #[track_caller]
    fn check(name: Option<&str>, token: Option<&str>) {
        check_announced(&announced(name, ""), token);
        check_announced(&announced(name, "efustcrl"), token);
    }

    #[track_caller]
    fn check_announced(announced: &Announcement, token: Option<&str>) {
        let signer = Signer::new(&KEY);
        let id = signer.make_id(announced, token);
        assert!(id.bytes().all(|byte| byte.is_ascii_graphic()), "{id}");
        assert!(id.len() <= ID_CHARS_MAX);
        assert_ne!(id, signer.make_id(announced, token));
        // The next process has the same key, and nothing else.
        let known = Signer::new(&KEY).read(&id, token).unwrap();
        assert_eq!(known.announced, *announced);

        for other in [None, Some(""), Some("other"), Some("laptop2")] {
            assert_eq!(signer.read(&id, other).is_some(), other == token);
        }
        assert_eq!(Signer::new(&[8; KEY_BYTES]).read(&id, token), None);
    }

    #[test]
    fn an_id_is_known_by_its_key_and_its_token() {
        check(Some("claude-code"), Some("laptop"));
        check(Some("Ünïcode \u{1f980}"), None);
        check(None, Some("laptop"));
        check(Some(&"\u{1f980}".repeat(100)), None);
    }

    #[test]
    fn an_id_that_was_altered_anywhere_is_none_of_ours() {
        let signer = Signer::new(&KEY);
        let id = signer.make_id(&announced(Some("codex"), ""), None);
        for id in [&id, &signer.make_id(&announced(Some("codex"), "es"), None)] {
            for at in 0..id.len() {
                for other in ["A", "B", ".", "=", ""] {
                    let mut altered = id.clone();
                    altered.replace_range(at..=at, other);
                    assert!(altered == *id || signer.read(&altered, None).is_none());
                }
            }
        }
        let more = [&format!("{id}."), &format!(".{id}"), &format!("{id}A")];
        for altered in more.map(String::as_str).into_iter().chain(["", "..", "0"]) {
            assert_eq!(signer.read(altered, None), None, "{altered}");
        }
    }
}
