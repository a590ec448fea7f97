//! Checks of a machine and a configuration, each with the command that fixes the problem.
//!
//! The checks work on data that the caller collects; collecting it starts programs.

mod advice;
mod runtimes;
mod secrets;
mod servers;

pub use advice::advise;
pub use runtimes::{check_runtimes, programs};
pub use secrets::{check_kept_secrets, check_secrets};
pub use servers::{check_addresses, check_arguments, check_commands, check_twins, check_variables};

/// One check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// The subject of the check: `server github`, `program npx`.
    pub about: String,
    /// The result of the check.
    pub verdict: CheckVerdict,
    /// The finding, in a sentence without a full stop. It contains no value of a variable.
    pub found: String,
    /// The command to type, or the action to take.
    pub next: Option<String>,
}

/// The result of a check, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CheckVerdict {
    /// Something does not work.
    Problem,
    /// The state could not be determined.
    Unknown,
    /// It works, but could work better.
    Warning,
    /// Nothing is wrong.
    Fine,
}

impl Check {
    fn new(verdict: CheckVerdict, about: impl Into<String>, found: impl Into<String>) -> Self {
        Self {
            about: about.into(),
            verdict,
            found: found.into(),
            next: None,
        }
    }

    /// A check without a problem.
    pub fn fine(about: impl Into<String>, found: impl Into<String>) -> Self {
        Self::new(CheckVerdict::Fine, about, found)
    }

    /// A check that found a problem.
    pub fn problem(about: impl Into<String>, found: impl Into<String>) -> Self {
        Self::new(CheckVerdict::Problem, about, found)
    }

    /// A check of something that works, but could work better.
    pub fn warning(about: impl Into<String>, found: impl Into<String>) -> Self {
        Self::new(CheckVerdict::Warning, about, found)
    }

    /// A check whose result could not be determined.
    pub fn unknown(about: impl Into<String>, found: impl Into<String>) -> Self {
        Self::new(CheckVerdict::Unknown, about, found)
    }

    /// Adds the command to type, or the action to take.
    #[must_use]
    pub fn then(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }
}

/// Returns the recipe of a server, by the package or address that it is started with.
fn recipe_of(launch: &fleet::Launch) -> Option<&'static recipes::Recipe> {
    match launch {
        fleet::Launch::Remote { url, .. } => recipes::of_package(&url.plain()?),
        fleet::Launch::Child { args, .. } => {
            let mut args = args.iter().filter_map(fleet::Template::plain);
            args.find_map(|arg| recipes::of_package(&arg))
        }
        fleet::Launch::Commands(_) => None,
    }
}

#[cfg(test)]
mod tests;
