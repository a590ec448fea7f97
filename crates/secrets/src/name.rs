//! Names of secrets.

use std::{fmt, str::FromStr};

/// The longest name of a secret, in characters.
pub const NAME_CHARS_MAX: usize = 64;

/// The text between the name of a secret and that of its caller.
const CALLER_SEPARATOR: char = '@';

/// The name of a stored secret: letters, digits, `-`, `_` and `.`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretName(String);

/// The reason why a text is not a name of a secret. The text is not repeated: it may be the secret
/// itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The name is empty.
    #[error("a secret needs a name")]
    Empty,
    /// The name has too many characters.
    #[error("the name of a secret has at most {NAME_CHARS_MAX} characters")]
    TooLong,
    /// The name holds a character that is not allowed.
    #[error("the name of a secret cannot contain {0:?}; use letters, digits, `-`, `_` and `.`")]
    Character(char),
}

impl SecretName {
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name under which the secret of one caller is stored. No other name contains the
    /// separator.
    #[must_use]
    pub fn of_caller(&self, caller: &str) -> Self {
        Self(format!("{}{CALLER_SEPARATOR}{caller}", self.0))
    }
}

impl FromStr for SecretName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let is_plain = |c: &char| c.is_ascii_alphanumeric() || "-_.".contains(*c);
        match text.chars().find(|c| !is_plain(c)) {
            _ if text.is_empty() => Err(NameError::Empty),
            Some(found) => Err(NameError::Character(found)),
            None if text.len() > NAME_CHARS_MAX => Err(NameError::TooLong),
            None => Ok(Self(text.to_owned())),
        }
    }
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
