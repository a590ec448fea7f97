//! One server as a client lists it, and its place.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{
    client_file::ClientFile,
    document::Slot,
    table::{EntryScope, TimeUnit, Variables},
};

/// A server as listed in a client's file, or in a pasted text.
#[derive(Debug, Clone)]
pub struct ServerEntry {
    /// Its name there; empty if a pasted text has none.
    pub name: String,
    /// Its members.
    pub value: Value,
    /// Its place; `None` for a pasted text.
    pub place: Option<EntryPlace>,
    /// True if it is disabled, there or in another file of the client.
    pub is_off: bool,
    pub(crate) project: Option<PathBuf>,
    pub(crate) variables: Variables,
    pub(crate) timeout: Option<TimeUnit>,
    /// The inputs that `${input:id}` names.
    pub(crate) inputs: Vec<Value>,
    pub(crate) remarks: Vec<String>,
}

/// The place of an entry.
#[derive(Debug, Clone)]
pub struct EntryPlace {
    /// The file.
    pub file: ClientFile,
    /// True if it can be removed: an entry that a bundle installed cannot.
    pub is_removable: bool,
    pub(crate) key: Vec<String>,
}

impl ServerEntry {
    /// Creates the entry of a pasted text.
    pub(crate) fn pasted(name: &str, value: Value) -> Self {
        Self {
            name: name.to_owned(),
            value,
            place: None,
            is_off: false,
            project: None,
            variables: Variables::Braces,
            timeout: None,
            inputs: Vec::new(),
            remarks: Vec::new(),
        }
    }

    /// Returns the folder of the project for which its client lists it; `None` if it is for all.
    pub fn project_folder(&self) -> Option<&Path> {
        let place = self.place.as_ref()?;
        let project = self.project.as_deref();
        project.filter(|_| place.file.scope() != EntryScope::User)
    }

    /// Returns the name of its client for messages: `Cursor`, `Claude Code (project)`.
    pub fn origin(&self) -> String {
        let Some(place) = &self.place else {
            return "pasted".to_owned();
        };
        let scope = match place.file.scope() {
            EntryScope::User => "",
            EntryScope::Local => " (local)",
            EntryScope::Project => " (project)",
        };
        format!("{}{scope}", place.file.client.name)
    }
}

/// The most servers of one file or text: merging compares every pair.
const ENTRIES_MAX: usize = 1_000;

/// Refuses a file or text that lists too many servers.
pub(crate) fn refuse_many(entries: &[ServerEntry]) -> Result<(), String> {
    match entries.len() {
        ..=ENTRIES_MAX => Ok(()),
        many => Err(format!(
            "{many} servers in it; at most {ENTRIES_MAX} are imported at once"
        )),
    }
}

/// Returns true if an entry itself says that it is disabled.
pub(crate) fn is_marked_disabled(value: &Value) -> bool {
    let says = |key: &str, off: bool| match value.get(key) {
        Some(Value::Bool(switch)) => *switch == off,
        Some(Value::String(text)) => text.parse() == Ok(off),
        _ => false,
    };
    says("disabled", true) || says("enabled", false)
}

impl EntryPlace {
    pub(crate) fn slot(&self) -> Slot<'_> {
        Slot {
            key: &self.key,
            list: self.file.file.list,
        }
    }
}
