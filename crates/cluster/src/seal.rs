//! Encryption and signatures with the key of the cluster. A NATS server sees sizes, times, and the names of
//! nodes; it cannot read a message, change it, or move it to another subject or key.
//!
//! A sealed text is `boot (16 bytes), number (8 bytes), ciphertext, tag (16 bytes)`. Each process has its own
//! key, derived from the cluster's key and from its boot id, and counts its texts, so no nonce occurs twice.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
};

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hkdf::{HKDF_SHA256, Prk, Salt},
};
use bytes::{BufMut as _, Bytes, BytesMut};
use dashmap::DashMap;
use serde::{Deserialize, Serialize};

/// The random id of one process. Nothing outlives it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Boot([u8; 16]);

impl Boot {
    fn random() -> Self {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the system has random numbers");
        Self(bytes)
    }
}

impl fmt::Display for Boot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Boot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Boot({self})")
    }
}

impl From<Boot> for String {
    fn from(boot: Boot) -> Self {
        boot.to_string()
    }
}

impl TryFrom<String> for Boot {
    type Error = hex::FromHexError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let mut bytes = [0; 16];
        hex::decode_to_slice(text, &mut bytes)?;
        Ok(Self(bytes))
    }
}

/// The bytes before the ciphertext.
const HEAD_BYTES: usize = 24;

/// The processes whose derived keys are kept. A further one forgets all.
const SENDERS_MAX: usize = 4_096;

/// Seals the texts of this process, and opens those of all.
pub(crate) struct Seal {
    secret: Prk,
    boot: Boot,
    key: LessSafeKey,
    next: AtomicU64,
    senders: DashMap<Boot, LessSafeKey>,
}

#[derive(Debug)]
pub(crate) struct Opened {
    /// The process that sealed it.
    pub(crate) from: Boot,
    /// Its number among the texts of that process.
    pub(crate) number: u64,
    pub(crate) text: Bytes,
}

/// The text was sealed with another key, or for another place, or was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it was not sealed with the key of this cluster")]
pub(crate) struct NotOurs;

impl Seal {
    pub(crate) fn new(cluster: &str, key: &str) -> Self {
        let salt = Salt::new(HKDF_SHA256, b"proxy cluster 1");
        let secret = salt.extract(format!("{cluster}\n{key}").as_bytes());
        let boot = Boot::random();
        Self {
            key: derive(&secret, boot),
            secret,
            boot,
            next: AtomicU64::new(0),
            senders: DashMap::new(),
        }
    }

    pub(crate) fn boot(&self) -> Boot {
        self.boot
    }

    /// Seals a text for a subject or a key of a bucket. Returns its number as well.
    pub(crate) fn seal(&self, place: &str, text: &[u8]) -> (u64, Bytes) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut sealed = BytesMut::with_capacity(HEAD_BYTES + text.len() + 16);
        sealed.put_slice(&self.boot.0);
        sealed.put_u64(number);
        let mut body = sealed.split_off(HEAD_BYTES);
        body.put_slice(text);
        let tag = self
            .key
            .seal_in_place_separate_tag(nonce(number), Aad::from(place.as_bytes()), &mut body)
            .expect("the text is shorter than 64 GiB");
        body.put_slice(tag.as_ref());
        sealed.unsplit(body);
        (number, sealed.freeze())
    }

    /// Opens a text that was sealed for this place.
    pub(crate) fn open(&self, place: &str, sealed: &Bytes) -> Result<Opened, NotOurs> {
        let (boot, rest) = sealed.split_first_chunk().ok_or(NotOurs)?;
        let (number, rest) = rest.split_first_chunk().ok_or(NotOurs)?;
        let (boot, number) = (Boot(*boot), u64::from_be_bytes(*number));
        let mut body = BytesMut::from(rest);
        let mut open = |key: &LessSafeKey| {
            let opened = key.open_in_place(nonce(number), Aad::from(place.as_bytes()), &mut body);
            opened.map(|it| it.len()).map_err(|_| NotOurs)
        };
        let length = if let Some(key) = self.senders.get(&boot) {
            open(&key)?
        } else {
            let key = derive(&self.secret, boot);
            let length = open(&key)?;
            if self.senders.len() >= SENDERS_MAX {
                self.senders.clear();
            }
            self.senders.insert(boot, key);
            length
        };
        body.truncate(length);
        Ok(Opened {
            from: boot,
            number,
            text: body.freeze(),
        })
    }
}

fn derive(secret: &Prk, boot: Boot) -> LessSafeKey {
    let mut key = [0; 32];
    let purpose: [&[u8]; 2] = [b"messages", &boot.0];
    let expanded = secret.expand(&purpose, HKDF_SHA256);
    expanded
        .and_then(|it| it.fill(&mut key))
        .expect("32 bytes are one block");
    LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &key).expect("the key has 32 bytes"))
}

fn nonce(number: u64) -> Nonce {
    let mut bytes = [0; NONCE_LEN];
    bytes[NONCE_LEN - 8..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::{Boot, NotOurs, Seal};

    #[test]
    fn a_text_is_opened_only_at_its_place_whole_and_with_the_same_key() {
        let seal = Seal::new("home", "k");
        let (number, sealed) = seal.seal("a.b", b"text");
        let other = Seal::new("home", "k");
        let opened = other.open("a.b", &sealed).unwrap();
        assert_eq!(
            (opened.from, opened.number, &opened.text[..]),
            (seal.boot(), number, &b"text"[..])
        );
        assert!(!sealed.windows(4).any(|part| part == b"text"));
        assert_eq!(other.open("a.c", &sealed).unwrap_err(), NotOurs);
        for at in 0..sealed.len() {
            let mut changed = sealed.to_vec();
            changed[at] ^= 1;
            assert!(other.open("a.b", &changed.into()).is_err(), "byte {at}");
            assert!(other.open("a.b", &sealed.slice(..at)).is_err());
        }
        for foreign in [Seal::new("home", "j"), Seal::new("work", "k")] {
            assert!(foreign.open("a.b", &sealed).is_err());
        }
        assert!(other.open("", &Bytes::new()).is_err());
    }

    #[test]
    fn no_number_occurs_twice_and_a_boot_id_is_read_back() {
        let seal = Seal::new("home", "k");
        let numbers: Vec<u64> = (0..3).map(|_| seal.seal("a", b"").0).collect();
        assert_eq!(numbers, [0, 1, 2]);
        let text = serde_json::to_string(&seal.boot()).unwrap();
        assert_eq!(serde_json::from_str::<Boot>(&text).unwrap(), seal.boot());
        assert!(serde_json::from_str::<Boot>("\"12\"").is_err());
    }
}
