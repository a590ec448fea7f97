//! One change of one file: our entry is added, others are removed. It is planned as a text, shown, and
//! written.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{
    disk::read_file,
    document::{self, EditError, Format, Made, Slot},
    entry::EntryPlace,
    find::ClientFile,
};

/// A planned change of a client's file. Nothing is written before it is applied.
#[derive(Debug, Clone)]
pub struct Change {
    /// The path of the file, which may not exist.
    pub path: PathBuf,
    /// Its text before the change; `None` if there is no file.
    pub before: Option<String>,
    /// Its text after the change.
    pub after: String,
    /// Added entries, in their order.
    pub(crate) added: Vec<ChangedEntry>,
    /// Removed entries.
    pub(crate) removed: Vec<ChangedEntry>,
    pub(crate) format: Format,
}

/// An entry of ours that was added, or one of another server that was removed.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub(crate) struct ChangedEntry {
    pub(crate) name: String,
    pub(crate) key: Vec<String>,
    pub(crate) list: bool,
    /// `None` for a removed entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) made: Option<Made>,
    pub(crate) value: Value,
}

impl ChangedEntry {
    fn new(slot: Slot<'_>, name: &str, made: Option<Made>, value: Value) -> Self {
        Self {
            name: name.to_owned(),
            key: slot.key.to_vec(),
            list: slot.list,
            made,
            value,
        }
    }

    pub(crate) fn slot(&self) -> Slot<'_> {
        Slot {
            key: &self.key,
            list: self.list,
        }
    }
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
    /// Begins a change of this client's file.
    pub fn of_file(found: &ClientFile) -> Result<Self, ChangeError> {
        Self::begin(&found.path, found.file.format)
    }

    /// Begins a change of the file that contains an entry.
    pub fn of_place(place: &EntryPlace) -> Result<Self, ChangeError> {
        Self::begin(&place.file, place.format)
    }

    fn begin(path: &Path, format: Format) -> Result<Self, ChangeError> {
        let before = if path.exists() {
            Some(read_file(path).map_err(ChangeError::Unreadable)?)
        } else {
            None
        };
        Ok(Self {
            path: path.to_owned(),
            after: before.clone().unwrap_or_default(),
            before,
            added: Vec::new(),
            removed: Vec::new(),
            format,
        })
    }

    /// Returns true if anything changes.
    pub fn is_needed(&self) -> bool {
        self.before.as_deref().unwrap_or_default() != self.after
    }

    /// Adds an entry. An equal entry of this name stays unchanged.
    pub fn add(
        &mut self,
        found: &ClientFile,
        name: &str,
        entry: &Value,
    ) -> Result<(), ChangeError> {
        let whole = self.attempt(|text, format| Ok(document::read(text, format)?))?;
        let slot = found.slot(&whole);
        let known = document::entry_at(&whole, slot, name);
        if known == Some(entry) {
            return Ok(());
        }
        if let Some(value) = known.cloned() {
            self.take(slot, name, value)?;
        }
        let (after, made) =
            self.attempt(|text, format| document::add(text, format, slot, name, entry))?;
        self.after = after;
        let added = ChangedEntry::new(slot, name, Some(made), entry.clone());
        self.added.push(added);
        Ok(())
    }

    /// Removes an entry. Returns true if the entry existed.
    pub fn remove(&mut self, place: &EntryPlace, name: &str) -> Result<bool, ChangeError> {
        let whole = self.attempt(|text, format| Ok(document::read(text, format)?))?;
        let slot = place.slot();
        let Some(value) = document::entry_at(&whole, slot, name).cloned() else {
            return Ok(false);
        };
        self.take(slot, name, value)?;
        Ok(true)
    }

    fn take(&mut self, slot: Slot<'_>, name: &str, value: Value) -> Result<(), ChangeError> {
        let removed = self
            .attempt(|text, format| document::remove(text, format, slot, name, Made::default()))?;
        if let Some(after) = removed {
            self.after = after;
            let removed = ChangedEntry::new(slot, name, None, value);
            self.removed.push(removed);
        }
        Ok(())
    }

    fn attempt<T>(
        &self,
        edit: impl FnOnce(&str, Format) -> Result<T, EditError>,
    ) -> Result<T, ChangeError> {
        edit(&self.after, self.format).map_err(|error| ChangeError::Edit {
            path: self.path.display().to_string(),
            error,
        })
    }

    /// Returns true if a text of the file has the entries that this change adds, and lacks those
    /// that it removes.
    pub(crate) fn is_done_in(&self, text: &str) -> bool {
        let Ok(whole) = document::read(text, self.format) else {
            return false;
        };
        let is_there =
            |it: &ChangedEntry| document::entry_at(&whole, it.slot(), &it.name).is_some();
        let is_added = |name: &str| self.added.iter().any(|added| added.name == name);
        let mut removed = self.removed.iter();
        self.added.iter().all(is_there) && removed.all(|it| is_added(&it.name) || !is_there(it))
    }
}
