//! The time that a child has to end.

use std::time::Duration;

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
    /// Returns the waits after the end of input, and after TERM.
    pub(crate) fn waits(self) -> [Duration; 2] {
        match self {
            // Measured servers needed up to 0.8 s on a loaded machine, and clients kill a program that
            // still runs 2 s after they closed its input.
            Self::Hurried => [Duration::from_millis(600), Duration::from_millis(700)],
            // A server that saves its state needs a second or two, while the next server, or the user,
            // waits.
            Self::Orderly => [Duration::from_secs(3); 2],
            // The same as those of containers and service managers.
            Self::Unhurried => [Duration::from_secs(10); 2],
        }
    }
}
