//! The ids of sessions: random, with the name of their client, and signed, so that the next process
//! knows what this one gave.
//!
//! `RANDOM.NAME.TAG`, each in base64url. The tag covers the name of the token that the session was
//! begun with, which is not told.

use aws_lc_rs::hmac::{self, Context, HMAC_SHA256, Key};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use subtle::ConstantTimeEq as _;

use crate::session_key::KEY_BYTES;

const RANDOM_BYTES: usize = 16;

/// HMAC-SHA256 is cut to so much; what is left nobody guesses.
const TAG_BYTES: usize = 16;

/// The longest id that is looked into: a name has 100 characters of up to 4 bytes.
const ID_CHARS_MAX: usize = 1_024;

/// Goes before what is signed: the same key signs nothing else.
const PURPOSE: &[u8] = b"session 1\0";

/// A session's signature, which is another for each id.
pub(super) type Tag = [u8; TAG_BYTES];

/// Makes ids, and knows those that were made with its key.
#[derive(Debug)]
pub(super) struct Signer(Key);

/// What an id says that was signed by us.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Signed {
    /// The name that the client announced.
    pub(super) name: Option<String>,
    pub(super) tag: Tag,
}

impl Signer {
    pub(super) fn new(key: &[u8; KEY_BYTES]) -> Self {
        Self(Key::new(HMAC_SHA256, key))
    }

    /// Makes an id that nobody can guess, for a client of this name that this token let in.
    pub(super) fn make_id(&self, name: Option<&str>, token: Option<&str>) -> String {
        let mut random = [0; RANDOM_BYTES];
        getrandom::fill(&mut random).expect("the system has randomness");
        let name = name.unwrap_or_default();
        let tag = self.sign(&random, name.as_bytes(), token);
        [&random, name.as_bytes(), &tag]
            .map(|part| BASE64.encode(part))
            .join(".")
    }

    /// Reads an id; none where we did not make it as it stands, for a client of this token.
    pub(super) fn read(&self, id: &str, token: Option<&str>) -> Option<Signed> {
        if id.len() > ID_CHARS_MAX {
            return None;
        }
        let mut parts = id.split('.').map(|part| BASE64.decode(part).ok());
        let mut next = || parts.next().flatten();
        let (random, name, tag) = (next()?, next()?, next()?);
        if parts.next().is_some() {
            return None;
        }
        let random: [u8; RANDOM_BYTES] = random.try_into().ok()?;
        let tag: Tag = tag.try_into().ok()?;
        if !bool::from(self.sign(&random, &name, token).ct_eq(&tag)) {
            return None;
        }
        let name = String::from_utf8(name).ok()?;
        let name = (!name.is_empty()).then_some(name);
        Some(Signed { name, tag })
    }

    fn sign(&self, random: &[u8; RANDOM_BYTES], name: &[u8], token: Option<&str>) -> Tag {
        let mut signing = Context::with_key(&self.0);
        signing.update(PURPOSE);
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

    #[track_caller]
    fn check(name: Option<&str>, token: Option<&str>) {
        let signer = Signer::new(&KEY);
        let id = signer.make_id(name, token);
        assert!(id.bytes().all(|byte| byte.is_ascii_graphic()), "{id}");
        assert!(id.len() <= ID_CHARS_MAX);
        assert_ne!(id, signer.make_id(name, token));
        // The next process has the same key, and nothing else.
        let known = Signer::new(&KEY).read(&id, token).unwrap();
        assert_eq!(known.name.as_deref(), name);

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
        let id = signer.make_id(Some("codex"), None);
        for at in 0..id.len() {
            for other in ["A", "B", ".", "=", ""] {
                let mut altered = id.clone();
                altered.replace_range(at..=at, other);
                assert!(altered == id || signer.read(&altered, None).is_none());
            }
        }
        let more = [&format!("{id}."), &format!(".{id}"), &format!("{id}A")];
        for altered in more.map(String::as_str).into_iter().chain(["", "..", "0"]) {
            assert_eq!(signer.read(altered, None), None, "{altered}");
        }
    }
}
