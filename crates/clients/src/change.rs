//! One change of one file: our entry is added, others are removed. It is planned as a text, shown, and
//! written.

use serde_json::Value;

use crate::{
    client_file::ClientFile,
    disk::read_file,
    document::{self, EditError, Slot, entry_at},
    entry::EntryPlace,
};

/// A planned change of a client's file. Nothing is written before it is applied.
#[derive(Debug, Clone)]
pub struct Change {
    /// The file, which may not exist.
    pub file: ClientFile,
    /// Its text before the change; `None` if there is no file.
    pub before: Option<String>,
    /// Its text after the change.
    pub after: String,
    /// Added entries, in their order.
    pub(crate) added: Vec<ChangedEntry>,
    /// Removed entries.
    pub(crate) removed: Vec<ChangedEntry>,
}

/// An entry of ours that was added, or one of another server that was removed.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub(crate) struct ChangedEntry {
    pub(crate) name: String,
    pub(crate) key: Vec<String>,
    pub(crate) value: Value,
}

/// The reason why a file is not changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// It cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// An entry cannot be added or removed.
    #[error("{path}: {error}")]
    Edit {
        /// The file.
        path: String,
        /// The reason.
        error: EditError,
    },
}

impl Change {
    /// Begins a change of a file.
    pub fn begin(file: &ClientFile) -> Result<Self, ChangeError> {
        let read = || read_file(&file.path).map_err(ChangeError::Unreadable);
        let before = file.path.exists().then(read).transpose()?;
        Ok(Self {
            file: file.clone(),
            after: before.clone().unwrap_or_default(),
            before,
            added: Vec::new(),
            removed: Vec::new(),
        })
    }

    /// Returns true if anything changes.
    pub fn is_needed(&self) -> bool {
        self.before.as_deref().unwrap_or_default() != self.after
    }

    /// Adds an entry. An equal entry of this name stays unchanged.
    pub fn add(&mut self, name: &str, entry: &Value) -> Result<(), ChangeError> {
        let whole = self.read()?;
        let slot = self.file.slot(&whole);
        let known = entry_at(&whole, slot, name);
        if known == Some(entry) {
            return Ok(());
        }
        self.edit(slot, name, Some(entry))?;
        let known = known.map(|known| ChangedEntry::new(slot, name, known));
        self.removed.extend(known);
        self.added.push(ChangedEntry::new(slot, name, entry));
        Ok(())
    }

    /// Removes an entry. Returns true if the entry existed.
    pub fn remove(&mut self, place: &EntryPlace, name: &str) -> Result<bool, ChangeError> {
        let (whole, slot) = (self.read()?, place.slot());
        let Some(known) = entry_at(&whole, slot, name) else {
            return Ok(false);
        };
        self.edit(slot, name, None)?;
        self.removed.push(ChangedEntry::new(slot, name, known));
        Ok(true)
    }

    fn read(&self) -> Result<Value, ChangeError> {
        let whole = document::read(&self.after, self.file.file.format);
        whole.map_err(|error| self.refuse(error.into()))
    }

    fn edit(
        &mut self,
        slot: Slot<'_>,
        name: &str,
        entry: Option<&Value>,
    ) -> Result<(), ChangeError> {
        let edited = document::edit(&self.after, self.file.file.format, slot, name, entry);
        self.after = edited.map_err(|error| self.refuse(error))?;
        Ok(())
    }

    fn refuse(&self, error: EditError) -> ChangeError {
        let path = self.file.path.display().to_string();
        ChangeError::Edit { path, error }
    }

    /// Returns true if a text of the file has the entries that this change adds, and lacks those
    /// that it removes.
    pub(crate) fn is_done_in(&self, text: &str) -> bool {
        let Ok(whole) = document::read(text, self.file.file.format) else {
            return false;
        };
        let is_there = |entry: &ChangedEntry| {
            let list = self.file.file.list;
            let key = &entry.key;
            entry_at(&whole, Slot { key, list }, &entry.name).is_some()
        };
        let is_added = |name: &str| self.added.iter().any(|added| added.name == name);
        let mut removed = self.removed.iter();
        self.added.iter().all(is_there)
            && removed.all(|entry| is_added(&entry.name) || !is_there(entry))
    }
}

impl ChangedEntry {
    fn new(slot: Slot<'_>, name: &str, value: &Value) -> Self {
        Self {
            name: name.to_owned(),
            key: slot.key.to_vec(),
            value: value.clone(),
        }
    }
}
