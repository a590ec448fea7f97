//! Rules that decide if a call is allowed, requires a person's consent or is refused. The crate is
//! pure: it reads no file and no clock, and asks no one.
//!
//! One principle decides in doubt: a rule that asks or denies matches everything that it may match, and
//! a rule that allows matches only what it certainly matches.

#![warn(missing_docs)]

use std::sync::Arc;

mod allowance;
mod arguments;
mod names;
mod path;
mod quota;
mod rule;
mod rules;
mod value_pattern;

#[cfg(test)]
mod tests;

pub use allowance::{Allowance, NotAllowable};
pub use quota::{Quota, QuotaSubject, QuotaUnit};
pub use rule::{Fault, KEYS, Rule};
pub use rules::{Decider, Decision, Policy, Preset};

/// The decision about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyVerdict {
    /// The call is made.
    Allow,
    /// A person is asked.
    Ask,
    /// The call is refused.
    Deny,
}

impl PolicyVerdict {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Allow, Self::Ask, Self::Deny];

    /// The word in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// The kind of a request to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// A tool call.
    Tool,
    /// A prompt, or a completion for one.
    Prompt,
    /// A resource that is read or subscribed to.
    Resource,
}

/// A tool's effects, as its server declares them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Effects {
    /// True if the tool deletes or overwrites something.
    pub is_destructive: bool,
    /// True if the tool changes nothing.
    pub is_read_only: bool,
    /// True if the tool interacts with external systems, which is the default.
    pub is_open_world: bool,
}

/// The parts of a call that rules check.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The name that its client announced; empty for a person at the command line.
    pub client: &'a str,
    /// The profiles of its session.
    pub profiles: &'a [Arc<str>],
    /// The server's name in the configuration.
    pub server: &'a str,
    /// The kind of the request.
    pub kind: RequestKind,
    /// The tool's or prompt's name on its server, or the resource's URI.
    pub name: &'a str,
    /// The category of the tool or server.
    pub category: &'a str,
    /// The effects of the tool.
    pub effects: Effects,
    /// A JSON object: exactly the text that would be sent.
    pub arguments: &'a str,
}
