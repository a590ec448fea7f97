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
    /// `verify`: there are only additions.
    Additive,
    /// `verify`: a person has to look at a change.
    NeedsPerson,
    /// `verify`: a server did not answer, or there is no lock file.
    Unknown,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Success => 0,
            Exit::Nothing => 1,
            Exit::Usage => 2,
            Exit::Partial => 3,
            Exit::Additive => 10,
            Exit::NeedsPerson => 11,
            Exit::Unknown => 12,
        })
    }
}
