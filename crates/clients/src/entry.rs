//! One server as a client lists it, and where it is listed.

use std::path::PathBuf;

use serde_json::Value;

use crate::{
    document::{Format, Slot},
    table::{Client, Scope, TimeUnit, Variables},
};

/// A server as it is listed in somebody's file, or in a text that was pasted.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its name there; empty where a text that was pasted gives none.
    pub name: String,
    /// Its members.
    pub value: Value,
    /// Its place; `None` for a text that was pasted.
    pub place: Option<Place>,
    /// Switched off, there or in another file of the client.
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
pub struct Place {
    /// The client that reads the file.
    pub client: &'static Client,
    /// The file.
    pub file: PathBuf,
    /// The projects that it is for.
    pub scope: Scope,
    /// True if it can be removed: an entry that a bundle installed cannot.
    pub is_removable: bool,
    pub(crate) format: Format,
    pub(crate) key: Vec<String>,
    pub(crate) list: bool,
}

/// A folder with a manifest, and the answers of its owner.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bundle {
    /// `None` if the bundle is not unpacked.
    pub(crate) folder: Option<PathBuf>,
    /// The questions, by key.
    pub(crate) questions: Value,
    /// The answers to them.
    pub(crate) answers: Value,
}

impl Entry {
    /// An entry of a text that was pasted.
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

    /// Its client, for a person: `Cursor`, `Claude Code (project)`.
    pub fn origin(&self) -> String {
        match &self.place {
            None => "pasted".to_owned(),
            Some(Place {
                client,
                scope: Scope::User,
                ..
            }) => client.name.clone(),
            Some(Place {
                client,
                scope: Scope::Local,
                ..
            }) => format!("{} (local)", client.name),
            Some(Place {
                client,
                scope: Scope::Project,
                ..
            }) => format!("{} (project)", client.name),
        }
    }
}

/// Limit for the servers of one file or text, more than anybody has: each is compared with each.
const ENTRIES_MAX: usize = 1_000;

/// Refuses a file or text that lists too many.
pub(crate) fn refuse_many(entries: &[Entry]) -> Result<(), String> {
    match entries.len() {
        ..=ENTRIES_MAX => Ok(()),
        many => Err(format!(
            "{many} servers in it, and no more than {ENTRIES_MAX} are taken over at once"
        )),
    }
}

/// Returns true if an entry says itself that it is switched off.
pub(crate) fn says_off(value: &Value) -> bool {
    let says = |key: &str, off: bool| match value.get(key) {
        Some(Value::Bool(switch)) => *switch == off,
        Some(Value::String(text)) => text.parse() == Ok(off),
        _ => false,
    };
    says("disabled", true) || says("enabled", false)
}

impl Place {
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
