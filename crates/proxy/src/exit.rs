//! Exit codes.

use std::process::ExitCode;

/// The outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// A hit, a success; for `reindex`, every server answered.
    Success,
    /// No hit, or a tool error; for `reindex`, no server answered.
    Nothing,
    /// The command line or the configuration is wrong.
    Usage,
    /// `reindex`: some servers answered, others failed. `init`: some files are unchanged.
    Partial,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Success => 0,
            Exit::Nothing => 1,
            Exit::Usage => 2,
            Exit::Partial => 3,
        })
    }
}
