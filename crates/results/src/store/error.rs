//! The reasons why nothing can be read under a handle.

/// A kept result that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HandleError {
    /// It never existed, expired, was removed for room, or belongs to another client.
    #[error("no such kept result, or it has expired")]
    Gone,
    /// Its file is damaged, for this reason.
    #[error("the result kept under it is damaged: {0}")]
    Damaged(String),
    /// It was never written.
    #[error("it could not be kept: {0}")]
    NotWritten(String),
}
