//! The information that a server reports about itself when a connection is opened.

use std::collections::BTreeSet;

use printable::Redactor;
use tool::Capability;

use crate::{
    Spoken,
    limits::{ABOUT_CHARS_MAX, INSTRUCTIONS_CHARS_MAX},
};

/// The information that a server reported about itself in the handshake.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerInfo {
    /// From `serverInfo`, on one line and cut to a bound, as the version is.
    pub name: Option<String>,
    /// From `serverInfo`.
    pub version: Option<String>,
    /// The server's instructions to its client, cut to a bound.
    pub instructions: Option<String>,
    /// The revision both agreed on, and how messages travel.
    pub spoken: Spoken,
    /// It has the capability `tools`.
    pub offers_tools: bool,
    /// The other capabilities that the server announced.
    pub capabilities: BTreeSet<Capability>,
}

impl ServerInfo {
    /// Masks the secrets that the server was given. A text that is cut first could keep a part of one.
    pub(crate) fn masked(self, redactor: Option<&Redactor>) -> Self {
        let Some(redactor) = redactor else {
            return self;
        };
        let mask = |text: String| redactor.apply(&text);
        Self {
            name: self.name.map(mask),
            version: self.version.map(mask),
            instructions: self.instructions.map(mask),
            ..self
        }
    }

    /// Cuts the texts to their bounds, without hidden characters.
    pub(crate) fn bounded(mut self) -> Self {
        let line = |text: String| printable::one_line_of(&text, ABOUT_CHARS_MAX);
        self.name = self.name.map(line);
        self.version = self.version.map(line);
        self.instructions = self.instructions.map(|text| {
            let first = printable::first_chars(&text, INSTRUCTIONS_CHARS_MAX);
            printable::prose(first).into_owned()
        });
        self
    }
}
