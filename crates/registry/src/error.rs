//! Errors of a registry folder.

use std::io;

use tool::ServerName;

/// A registry folder that could not be opened or written.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The configuration contains an invalid glob; nothing was read or written.
    #[error("server `{server}`: {message}")]
    Glob {
        /// The server whose configuration contains the glob.
        server: ServerName,
        /// The message of the parser.
        message: String,
    },
    /// The write failed: nothing was committed, and the state on disk is unchanged.
    #[error("registry folder: {0}")]
    Write(#[from] io::Error),
    /// The index could be built neither on disk nor in memory.
    #[error("search index: {0}")]
    Index(#[from] IndexError),
}

impl RegistryError {
    /// Returns true if another process held the writers' lock until the timeout: a retry may
    /// succeed.
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Write(error) if error.kind() == io::ErrorKind::TimedOut)
    }
}

/// An index that could neither be read nor built.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// An error of Tantivy.
    #[error(transparent)]
    Tantivy(#[from] tantivy::TantivyError),
    /// The folder of the index could not be read or written.
    #[error(transparent)]
    Disk(#[from] io::Error),
    /// The index is damaged or belongs to another generation.
    #[error("it does not fit the snapshots: {0}")]
    Misfit(&'static str),
}
