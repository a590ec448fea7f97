//! The reasons why nothing can be read under a handle.

/// A kept result that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HandleError {
    /// It never existed, expired, was removed for room, or belongs to another client.
    #[error("no such kept result, or it has expired")]
    Gone {
        /// The tool that returned it, if it is remembered.
        tool: Option<String>,
    },
    /// Its file is damaged.
    #[error("the result kept under it is damaged: {why}")]
    Damaged {
        /// The tool that returned it, if the file still names it.
        tool: Option<String>,
        /// The reason why the file cannot be used.
        why: String,
    },
    /// It was never written.
    #[error("it could not be kept: {0}")]
    NotWritten(String),
}

impl HandleError {
    /// The tool to call again, if it is known.
    pub fn into_tool(self) -> Option<String> {
        match self {
            Self::Gone { tool } | Self::Damaged { tool, .. } => tool,
            Self::NotWritten(_) => None,
        }
    }
}
