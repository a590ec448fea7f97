//! Rules that say which calls are made, asked about or refused. Pure: it reads no file, knows no
//! time, and asks nobody.
//!
//! One principle settles what is in doubt: a rule that asks or denies fits where it may fit, a rule
//! that allows only where it surely does.

#![warn(missing_docs)]

mod allowance;
mod arguments;
mod idle;
mod matcher;
mod names;
mod path;
mod rule;
mod rules;
mod value_pattern;

#[cfg(test)]
mod tests;

pub use allowance::{Allowance, NotAllowable};
pub use idle::{IdlePattern, KnownNames, PatternKey};
pub use rule::{Fault, KEYS, Rule};
pub use rules::{Decider, Decision, Policy, Preset};

/// The pattern that fits this very text and no other.
pub fn escape(text: &str) -> String {
    matcher::escape(text)
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is made.
    Allow,
    /// A person is asked.
    Ask,
    /// It is refused.
    Deny,
}

impl Verdict {
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

/// The kind of what is asked of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A tool is called.
    Tool,
    /// A prompt is made, or completed.
    Prompt,
    /// A resource is read, or watched.
    Resource,
}

/// What a server says of a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Effects {
    /// It takes something away.
    pub is_destructive: bool,
    /// It changes nothing.
    pub is_read_only: bool,
    /// It deals with things outside; that is so unless it is denied.
    pub is_open_world: bool,
}

/// A call as rules see it.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The name that its client announced; empty for a person at the command line.
    pub client: &'a str,
    /// The server's name in the configuration.
    pub server: &'a str,
    /// What is asked of it.
    pub kind: Kind,
    /// The own name of the tool or prompt, or the resource's URI, at its server.
    pub name: &'a str,
    /// The category of tool or server.
    pub category: &'a str,
    /// What it does.
    pub effects: Effects,
    /// A JSON object, the very text that would be sent.
    pub arguments: &'a str,
}
