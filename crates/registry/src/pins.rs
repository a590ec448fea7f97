//! Pins: tools as they were when a person accepted them, and which of them are others by now.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tool::{Tool, ToolRef};

/// What becomes of tools that are not as they were accepted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Pin {
    /// They are used, and a review tells of them.
    #[default]
    Warn,
    /// They are neither shown nor called until they are accepted.
    Hold,
    /// Nothing is compared.
    Off,
}

impl Pin {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Warn, Self::Hold, Self::Off];

    /// The word in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Warn => "warn",
            Self::Hold => "hold",
            Self::Off => "off",
        }
    }
}

/// A tool that a person has not accepted as it is.
#[derive(Debug, Clone)]
pub struct Review {
    /// Its address.
    pub at: ToolRef,
    /// The definition that was accepted, where it is known; none: the tool is new.
    pub before: Option<String>,
    /// The definition as it is.
    pub now: String,
    /// It was refused as it is.
    pub is_refused: bool,
    /// What of it may be meant to steer a model.
    pub signs: Vec<String>,
}

/// Why a tool is kept out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldBy {
    /// `pin = "hold"`: it is new, or not as it was accepted.
    Pin,
    /// A person refused it as it is.
    Refusal,
}

/// The pins of one server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Pins {
    /// Digests by tool.
    accepted: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    refused: BTreeMap<String, String>,
    /// The accepted definitions of tools that are others by now.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    before: BTreeMap<String, String>,
    /// Tools of now that are not as they were accepted; whether they were refused so.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    open: BTreeMap<String, bool>,
}

/// Of a digest, in hexadecimal digits.
const DIGITS: usize = 16;

fn digest_of(tool: &Tool) -> String {
    tool.digest().short(DIGITS)
}

impl Pins {
    /// A server is accepted with the tools that it has when it is met first.
    pub(crate) fn of(tools: &[Tool]) -> Self {
        let accepted = tools
            .iter()
            .map(|tool| (tool.name().to_owned(), digest_of(tool)));
        Self {
            accepted: accepted.collect(),
            ..Self::default()
        }
    }

    /// After a survey: `before` are the tools up to now.
    pub(crate) fn follow(mut self, before: &[Tool], now: &[Tool]) -> Self {
        for tool in before {
            if self.has_accepted(tool) {
                let json = tool.json().to_owned();
                self.before.insert(tool.name().to_owned(), json);
            }
        }
        self.compare(now);
        self
    }

    /// Accepts or refuses one of these tools as it is.
    pub(crate) fn decide(&mut self, tool: &Tool, is_accepted: bool) {
        let name = tool.name().to_owned();
        self.refused.remove(&name);
        let list = if is_accepted {
            &mut self.accepted
        } else {
            &mut self.refused
        };
        list.insert(name, digest_of(tool));
    }

    /// Says anew which of these tools are open.
    pub(crate) fn compare(&mut self, now: &[Tool]) {
        self.open.clear();
        for tool in now {
            let digest = digest_of(tool);
            let name = tool.name();
            if self.accepted.get(name) == Some(&digest) {
                self.before.remove(name);
                continue;
            }
            let is_refused = self.refused.get(name) == Some(&digest);
            self.open.insert(name.to_owned(), is_refused);
        }
    }

    fn has_accepted(&self, tool: &Tool) -> bool {
        self.accepted.get(tool.name()) == Some(&digest_of(tool))
    }

    /// The tools that wait for a person, and those that were refused.
    pub(crate) fn open(&self) -> impl Iterator<Item = (&str, bool)> {
        self.open
            .iter()
            .map(|(name, is_refused)| (name.as_str(), *is_refused))
    }

    pub(crate) fn definition_before(&self, tool: &str) -> Option<&String> {
        self.before.get(tool)
    }

    /// Whether a tool is kept out, and by what.
    pub(crate) fn holds(&self, tool: &str, pin: Pin) -> Option<HeldBy> {
        match (pin, self.open.get(tool)?) {
            (Pin::Off, _) | (Pin::Warn, false) => None,
            (_, true) => Some(HeldBy::Refusal),
            (Pin::Hold, false) => Some(HeldBy::Pin),
        }
    }
}
