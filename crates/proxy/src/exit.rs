//! Exit codes, and errors that end a command with one of them.

use std::{error::Error, fmt, process::ExitCode};

/// The outcome of a run, with its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// A hit, a success; for `reindex`, every server answered.
    Success = 0,
    /// No hit, or a tool error; for `reindex`, no server answered.
    Nothing = 1,
    /// The command line or the configuration is wrong.
    Usage = 2,
    /// `reindex`: some servers answered, others failed. `status`: some daemons. `init`: some files are unchanged.
    Partial = 3,
    /// `review --verify`: there are only additions.
    Additive = 10,
    /// `review --verify`: a person has to look at a change.
    NeedsPerson = 11,
    /// `review --verify`: a server did not answer, or there is no lock file.
    Unknown = 12,
}

/// An error that ends a command: its text is printed as it is.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) exit: Exit,
    text: String,
}

impl Exit {
    pub(crate) fn of_hit(is_hit: bool) -> Self {
        if is_hit { Self::Success } else { Self::Nothing }
    }

    /// Returns the outcome of a change of several files.
    pub(crate) fn of_change(is_whole: bool) -> Self {
        if is_whole {
            Self::Success
        } else {
            Self::Partial
        }
    }

    /// Returns the outcome if so many of all actions failed.
    pub(crate) fn of_failures(failed: usize, all: usize) -> Self {
        match failed {
            0 => Self::Success,
            _ if failed == all => Self::Nothing,
            _ => Self::Partial,
        }
    }

    /// Returns an error that prints the text and ends the command with this outcome.
    pub(crate) fn with(self, text: impl Into<String>) -> anyhow::Error {
        let text = text.into();
        Ended { exit: self, text }.into()
    }
}

/// Returns the error of a command that is used wrongly.
pub(crate) fn refuse(why: impl fmt::Display) -> anyhow::Error {
    Exit::Usage.with(format!("error: {why}"))
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for Ended {}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
