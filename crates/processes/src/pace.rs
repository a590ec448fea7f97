//! The time that a child has to end.

use std::time::Duration;

use crate::limits::{HURRIED_AFTER_EOF, ORDERLY_AFTER_EOF, UNHURRIED_AFTER_EOF};
#[cfg(unix)]
use crate::limits::{HURRIED_AFTER_TERM, ORDERLY_AFTER_TERM, UNHURRIED_AFTER_TERM};

/// The time that a child has to end on request before it is killed. A child that ends sooner causes
/// no delay at any pace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Our own process is about to be killed: 1.5 s in all.
    Hurried,
    /// A caller waits for the end, and can wait while data is written: 3 s after the end of input,
    /// and 3 s after TERM.
    Orderly,
    /// No caller waits: 10 s after the end of input, and 10 s after TERM.
    Unhurried,
}

impl Pace {
    pub(crate) fn after_eof(self) -> Duration {
        match self {
            Self::Hurried => HURRIED_AFTER_EOF,
            Self::Orderly => ORDERLY_AFTER_EOF,
            Self::Unhurried => UNHURRIED_AFTER_EOF,
        }
    }

    #[cfg(unix)]
    pub(crate) fn after_term(self) -> Duration {
        match self {
            Self::Hurried => HURRIED_AFTER_TERM,
            Self::Orderly => ORDERLY_AFTER_TERM,
            Self::Unhurried => UNHURRIED_AFTER_TERM,
        }
    }
}
