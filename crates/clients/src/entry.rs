//! One server as a client lists it, and its place.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{
    document::{Format, Slot},
    table::{ClientProgram, EntryScope, TimeUnit, Variables},
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
    pub(crate) bundle: Option<Bundle>,
    pub(crate) remarks: Vec<String>,
}

/// The place of an entry.
#[derive(Debug, Clone)]
pub struct EntryPlace {
    /// The client that reads the file.
    pub client: &'static ClientProgram,
    /// The file.
    pub file: PathBuf,
    /// The projects that it is for.
    pub scope: EntryScope,
    /// True if it can be removed: an entry that a bundle installed cannot.
    pub is_removable: bool,
    pub(crate) format: Format,
    pub(crate) key: Vec<String>,
    pub(crate) list: bool,
}

/// A folder with a manifest, and the answers of the user to its questions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bundle {
    /// `None` if the bundle is not unpacked.
    pub(crate) folder: Option<PathBuf>,
    /// The questions, by key.
    pub(crate) questions: Value,
    /// The answers to them.
    pub(crate) answers: Value,
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
            variables: Variables::Any,
            timeout: None,
            inputs: Vec::new(),
            bundle: None,
            remarks: Vec::new(),
        }
    }

    /// Returns the folder of the project for which its client lists it; `None` if it is for all.
    pub fn project_folder(&self) -> Option<&Path> {
        let place = self.place.as_ref()?;
        let project = self.project.as_deref();
        project.filter(|_| place.scope != EntryScope::User)
    }

    /// Returns the name of its client for messages: `Cursor`, `Claude Code (project)`.
    pub fn origin(&self) -> String {
        let Some(place) = &self.place else {
            return "pasted".to_owned();
        };
        let scope = match place.scope {
            EntryScope::User => "",
            EntryScope::Local => " (local)",
            EntryScope::Project => " (project)",
        };
        format!("{}{scope}", place.client.name)
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
    /// Returns true if its owner edits the file, because it is YAML.
    pub fn is_edited_by_hand(&self) -> bool {
        self.format == Format::Yaml
    }

    pub(crate) fn slot(&self) -> Slot<'_> {
        Slot {
            key: &self.key,
            list: self.list,
        }
    }
}
