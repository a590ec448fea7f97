//! Errors of a registry folder, by the caller's possible reaction.

use std::io;

use tool::ServerName;

/// A registry folder that could not be opened or written.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The configuration is at fault; nothing was read or written.
    #[error("server `{server}`: {message}")]
    Glob {
        /// The server whose glob it is.
        server: ServerName,
        /// The complaint of the parser.
        message: String,
    },
    /// Nothing was committed: the state on disk is the one before.
    #[error("registry folder: {0}")]
    Write(#[from] io::Error),
    /// Neither an index on disk nor one in memory could be made.
    #[error("search index: {0}")]
    Index(#[from] IndexError),
}

impl RegistryError {
    /// Returns true if another process held the writers' lock for too long: a retry may succeed later.
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Write(error) if error.kind() == io::ErrorKind::TimedOut)
    }
}

/// An index that could neither be read nor built.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// Tantivy's own error.
    #[error(transparent)]
    Tantivy(#[from] tantivy::TantivyError),
    /// Its folder could not be read or written.
    #[error(transparent)]
    Disk(#[from] io::Error),
    /// It is another generation's index, or a damaged one.
    #[error("it does not fit the snapshots: {0}")]
    Misfit(&'static str),
}
