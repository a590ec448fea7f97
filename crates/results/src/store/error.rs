//! The reasons why nothing can be read under a handle.

/// A kept result that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HandleError {
    /// It never was, is too old, had to make room, or belongs to another client.
    #[error("nothing is kept under it (any more)")]
    Gone {
        /// The tool that gave it, where it is remembered.
        tool: Option<String>,
    },
    /// Its file is not what was written.
    #[error("what was kept under it is damaged: {why}")]
    Damaged {
        /// The tool that gave it, where the file still says so.
        tool: Option<String>,
        /// What is wrong with the file.
        why: String,
    },
    /// It was never written.
    #[error("it could not be kept: {0}")]
    NotWritten(String),
}

impl HandleError {
    /// The tool to call again, where it is known.
    pub fn into_tool(self) -> Option<String> {
        match self {
            Self::Gone { tool } | Self::Damaged { tool, .. } => tool,
            Self::NotWritten(_) => None,
        }
    }
}
