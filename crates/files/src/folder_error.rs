//! The reason why a folder is refused.

use std::{fmt, io, path::Path};

/// A reason why a folder cannot be used.
#[derive(Debug)]
pub enum FolderError {
    /// It exists, and another user could put files into it. Contains the reason and the fix.
    NotOurs(String),
    /// It cannot be created or read.
    Unusable(io::Error),
}

impl FolderError {
    pub(crate) fn refuse(path: &Path, why: &str) -> Self {
        Self::NotOurs(format!("{} {why}", path.display()))
    }
}

impl fmt::Display for FolderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOurs(why) => f.write_str(why),
            Self::Unusable(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for FolderError {}

impl From<io::Error> for FolderError {
    fn from(error: io::Error) -> Self {
        Self::Unusable(error)
    }
}

impl From<FolderError> for io::Error {
    fn from(error: FolderError) -> Self {
        match error {
            FolderError::NotOurs(why) => Self::new(io::ErrorKind::PermissionDenied, why),
            FolderError::Unusable(error) => error,
        }
    }
}
