//! The changes that surveys found, one per line, in a log of bounded size.

use std::{collections::BTreeMap, fs, path::Path};

use files::{BoundedLog, put_aside};
use serde::{Deserialize, Serialize};

use crate::{disk::Disk, plan::Planned};

pub(crate) const FILE: &str = "history.jsonl";

/// The maximum size of the definitions in one line, in bytes; longer ones are omitted.
const DEFINITIONS_BYTES_MAX: usize = 128 * 1024;

/// The changes that one survey found in a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HistoryEntry {
    /// Its position among the entries of all servers, counted from 1.
    #[serde(skip)]
    pub number: usize,
    /// The time of the survey, in Unix seconds.
    pub at: u64,
    /// The server.
    pub server: String,
    /// Tools that are new.
    pub added: Vec<String>,
    /// Tools whose definition changed.
    pub changed: Vec<String>,
    /// Tools that were removed.
    pub removed: Vec<String>,
    /// The server's version before and after, if it changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<(String, String)>,
    /// The previous and the new definition of each changed tool.
    pub definitions: BTreeMap<String, (String, String)>,
}

impl HistoryEntry {
    /// Removes all changes but those of one tool. Returns true if there are any.
    pub fn keep_tool(&mut self, tool: &str) -> bool {
        for names in [&mut self.added, &mut self.changed, &mut self.removed] {
            names.retain(|name| name == tool);
        }
        self.definitions.retain(|name, _| name == tool);
        self.version = None;
        self.has_tools()
    }

    fn has_tools(&self) -> bool {
        let lists = [&self.added, &self.changed, &self.removed];
        lists.iter().any(|names| !names.is_empty())
    }
}

/// Reads the changes that surveys found, oldest first, of one server or of all servers.
pub(crate) fn list(disk: &Disk, server: Option<&str>) -> Vec<HistoryEntry> {
    let path = disk.path(FILE);
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    let text = [read(&put_aside(&path)), read(&path)].join("\n");
    let lines = text.lines();
    let entries = lines.filter_map(|line| serde_json::from_str::<HistoryEntry>(line).ok());
    let entries = (1..).zip(entries);
    let entries = entries.map(|(number, entry)| HistoryEntry { number, ..entry });
    let is_meant = |it: &HistoryEntry| server.is_none_or(|server| it.server == server);
    entries.filter(is_meant).collect()
}

/// Appends the changes of a commit. Write errors are ignored, since the log is only informational.
pub(crate) fn note(disk: &Disk, planned: &[Planned], now: u64) {
    let mut lines = String::new();
    for it in planned {
        let bytes: usize = it.altered.values().map(|(a, b)| a.len() + b.len()).sum();
        let definitions = Some(&it.altered).filter(|_| bytes <= DEFINITIONS_BYTES_MAX);
        let entry = HistoryEntry {
            number: 0,
            at: now,
            server: it.server.to_string(),
            added: it.plan.added.clone(),
            changed: it.plan.changed.clone(),
            removed: it.plan.removed.clone(),
            version: it.version.clone(),
            definitions: definitions.cloned().unwrap_or_default(),
        };
        if !entry.has_tools() && entry.version.is_none() {
            continue;
        }
        if let Ok(line) = serde_json::to_string(&entry) {
            lines.push_str(&line);
            lines.push('\n');
        }
    }
    if lines.is_empty() {
        return;
    }
    let mut log = BoundedLog::new(disk.path(FILE));
    if let Err(error) = log.append(lines.as_bytes()) {
        tracing::debug!(%error, "changes were not recorded");
    }
}

#[cfg(test)]
mod tests {
    use super::HistoryEntry;
    use crate::{Registry, Rules};

    #[test]
    fn the_history_of_a_tool_has_only_its_own_changes() {
        let mut entry = HistoryEntry {
            added: vec!["a".to_owned(), "b".to_owned()],
            removed: vec!["c".to_owned()],
            version: Some(("1".to_owned(), "2".to_owned())),
            ..HistoryEntry::default()
        };
        assert!(entry.clone().keep_tool("c"));
        assert!(!entry.clone().keep_tool("x"));
        assert!(entry.keep_tool("b"));
        assert_eq!(
            (entry.added.as_slice(), entry.version),
            (&["b".to_owned()][..], None)
        );
    }

    #[test]
    fn an_entry_has_one_number_whatever_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let registry = Registry::open(folder.path(), Rules::default()).unwrap();
        let lines =
            ["mail", "notes", "mail"].map(|server| format!("{{\"server\":\"{server}\"}}\n"));
        std::fs::write(folder.path().join("history.jsonl"), lines.concat()).unwrap();
        let numbers = |server| {
            let entries = registry.list_history(server);
            entries.iter().map(|it| it.number).collect::<Vec<_>>()
        };
        assert_eq!(numbers(None), [1, 2, 3]);
        assert_eq!(numbers(Some("mail")), [1, 3]);
        assert_eq!(numbers(Some("notes")), [2]);
    }
}
