//! The names of kept results.

use std::{fmt, io};

/// The name of a kept result: an `r` and 16 hexadecimal digits that nobody can guess.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Handle(String);

/// Random bytes in a handle.
const BYTES: usize = 8;

impl Handle {
    /// A new random handle; fails if the system has no random bytes.
    pub(super) fn random() -> io::Result<Self> {
        let mut bytes = [0; BYTES];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        Ok(Self(format!("r{:016x}", u64::from_be_bytes(bytes))))
    }

    /// Parses a handle that a model wrote; blanks around it and capitals are accepted. Any other
    /// text is refused, which also prevents a handle from naming a file elsewhere.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        let digits = text.strip_prefix('r')?;
        let is_handle =
            digits.len() == 2 * BYTES && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_handle.then_some(Self(text))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
