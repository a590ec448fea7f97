//! The servers whose instructions the model of a session has received: each is sent once.

use std::{borrow::Cow, collections::BTreeMap};

use parking_lot::Mutex;
use registry::{KnownServer, Subject};
use tool::ServerName;

/// The length of instructions sent with a search, in characters.
const BRIEF_CHARS: usize = 300;

/// The length of instructions sent with a description, in characters.
const LONG_CHARS: usize = 600;

/// The servers whose instructions were sent; true if nothing is left to send.
#[derive(Debug, Default)]
pub(crate) struct SentInstructions(Mutex<BTreeMap<ServerName, bool>>);

impl SentInstructions {
    /// The beginning of a server's instructions on one line, the first time.
    pub(crate) fn brief(&self, server: &KnownServer) -> Option<String> {
        let text = &*instructions(server)?;
        let mut sent = self.0.lock();
        if sent.contains_key(&server.name) {
            return None;
        }
        let is_whole = text.chars().count() <= BRIEF_CHARS;
        sent.insert(server.name.clone(), is_whole);
        Some(printable::one_line_of(text, BRIEF_CHARS))
    }

    /// The long form of a server's instructions, unless it was sent before.
    pub(crate) fn long(&self, server: &KnownServer) -> Option<String> {
        let text = &*instructions(server)?;
        let was_whole = self.0.lock().insert(server.name.clone(), true);
        if was_whole == Some(true) {
            return None;
        }
        let first = printable::first_chars(text, LONG_CHARS);
        let end = if first.len() < text.len() { "…" } else { "" };
        Some(format!("{first}{end}"))
    }
}

fn instructions(server: &KnownServer) -> Option<Cow<'_, str>> {
    if server.withheld.contains_key(&Subject::Instructions) {
        let name = &server.name;
        return Some(Cow::Owned(format!(
            "(held back, a person has not accepted them; the person can type `proxy review {name}`)"
        )));
    }
    let text = server.instructions.as_deref().map(str::trim);
    text.filter(|text| !text.is_empty()).map(Cow::Borrowed)
}
