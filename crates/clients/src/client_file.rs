//! A file in which a client lists servers.

use std::path::PathBuf;

use serde_json::Value;

use crate::{
    disk::read_file,
    document::{self, Format, Slot, at, entry_at, render_yaml},
    table::{ClientProgram, ConfigFile, EntryScope},
};

/// A file of a client.
#[derive(Debug, Clone)]
pub struct ClientFile {
    /// The client that reads it.
    pub client: &'static ClientProgram,
    pub(crate) file: &'static ConfigFile,
    /// The path.
    pub path: PathBuf,
}

impl ClientFile {
    /// Returns the place of the servers: the alternative key that is already a table in the file,
    /// else the usual key.
    pub(crate) fn slot(&self, whole: &Value) -> Slot<'static> {
        let is_table = |key: &&Vec<String>| at(whole, key).is_some_and(Value::is_object);
        let mut others = self.file.also.iter().filter(|key| !key.is_empty());
        Slot {
            key: others.find(is_table).unwrap_or(&self.file.key),
            list: self.file.list,
        }
    }

    /// Returns true if its owner edits it, because it is YAML.
    pub fn is_edited_by_hand(&self) -> bool {
        self.file.format == Format::Yaml
    }

    /// Returns the lines that its owner pastes into it to add an entry; `None` if it has an equal
    /// one.
    pub fn lines_to_paste(&self, name: &str, entry: &Value) -> Result<Option<String>, String> {
        let text = if self.path.exists() {
            read_file(&self.path)?
        } else {
            String::new()
        };
        let whole = document::read(&text, self.file.format).map_err(|error| error.to_string())?;
        let slot = self.slot(&whole);
        let is_there = entry_at(&whole, slot, name) == Some(entry);
        Ok((!is_there).then(|| render_yaml(slot, name, entry)))
    }

    /// Returns the scope of the servers in the file.
    pub fn scope(&self) -> EntryScope {
        self.file.scope
    }
}
