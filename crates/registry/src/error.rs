//! Errors of a registry folder, by what the caller can do.

use std::io;

use tool::ServerName;

use crate::index::IndexError;

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
