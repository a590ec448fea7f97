//! A server that goes on under another name.

use std::{collections::BTreeMap, fs, io, path::Path};

use files::{put_aside, write_whole};
use serde_json::Value;
use tool::ServerName;

use crate::{
    RegistryError,
    catalog::Records,
    disk::{Disk, snapshot_path},
    feedback, history,
    registry::Registry,
    snapshot::renamed,
    usage,
};

impl Registry {
    /// Makes everything that is kept of the server `from` known of `to` as well: its pins (what was
    /// accepted and refused), its snapshot and record, its counted calls and what searches learned.
    ///
    /// A rename takes three steps: `adopt_server`, then the configuration is written, then
    /// [`Registry::finish_rename`]. A crash between two of them leaves the pins with both names or with
    /// the old one, never with none, so that no refused or held tool is free under either name; every
    /// step may be repeated. Pins that `to` had from a removed server of that name are replaced; so
    /// check before that no server `to` is configured. A server that was never surveyed has nothing to
    /// adopt, which is no error. Fails without a change where the pins cannot be written
    /// ([`Registry::pin_trouble`] says why).
    ///
    /// Durable when it returns; waits for another writer's turn. Logs, logins and rules of the
    /// configuration are not the registry's.
    pub fn adopt_server(&self, from: &ServerName, to: &ServerName) -> Result<(), RegistryError> {
        let disk = self.disk();
        let _turn = disk.take_turn()?;
        let (mut records, mut book) = Records::read_with_pins(disk);
        if let Some(trouble) = book.trouble().filter(|it| !it.is_writable()) {
            return Err(io::Error::other(trouble.to_string()).into());
        }
        if let Some(pins) = book.get(from.as_str()).cloned() {
            book.set(to.as_str(), pins);
        } else {
            book.remove(to.as_str());
        }
        // Before the record: without pins it would count as a server that has lost them.
        book.write(disk, &records)?;
        copy_counts(disk, from, to)?;
        if let Some(record) = records.servers.get(from.as_str()) {
            let mut record = record.clone();
            if let Some(file_name) = record.snapshot.as_deref()
                && let Some(new) = renamed(file_name, to)
            {
                // A damaged one is found to be damaged under the new name as well.
                if let Ok(bytes) = disk.read(&snapshot_path(file_name)) {
                    disk.write(&snapshot_path(&new), &bytes)?;
                }
                record.snapshot = Some(new);
            }
            records.servers.insert(to.to_string(), record);
        }
        Ok(book.write_with(disk, &records)?)
    }

    /// Ends a rename, once the configuration has the new name: forgets what is kept under the old one,
    /// pins included, and gives its lines of the history to the new one. Does nothing for a server that
    /// was not adopted, whose pins would be lost.
    ///
    /// Durable when it returns; waits for another writer's turn.
    pub fn finish_rename(&self, from: &ServerName, to: &ServerName) -> Result<(), RegistryError> {
        let disk = self.disk();
        let _turn = disk.take_turn()?;
        let (mut records, mut book) = Records::read_with_pins(disk);
        let is_adopted = book.get(from.as_str()).is_none() || book.get(to.as_str()).is_some();
        if !is_adopted {
            return Ok(());
        }
        rename_history(&disk.path(history::FILE), from, to);
        remove_counts(disk, from)?;
        records.servers.remove(from.as_str());
        book.remove(from.as_str());
        Ok(book.write_with(disk, &records)?)
    }
}

/// The old counts stay until the rename is finished; counting twice is no harm where one of the names
/// is not configured.
fn copy_counts(disk: &Disk, from: &ServerName, to: &ServerName) -> io::Result<()> {
    change_tools(disk, |tool| {
        let own = tool.strip_prefix(from.as_str())?.strip_prefix('/')?;
        Some((format!("{to}/{own}"), true))
    })
}

fn remove_counts(disk: &Disk, from: &ServerName) -> io::Result<()> {
    change_tools(disk, |tool| {
        tool.strip_prefix(from.as_str())?.strip_prefix('/')?;
        Some((String::new(), false))
    })
}

/// Adds to or removes from the files that count by tool, `server/tool`. The answer of `change` is the name
/// that takes the value over and whether the old one stays; an empty name is nobody's.
fn change_tools(disk: &Disk, change: impl Fn(&str) -> Option<(String, bool)>) -> io::Result<()> {
    let change_map = |map: &mut serde_json::Map<String, Value>| {
        let all: BTreeMap<String, (String, bool)> = map
            .keys()
            .filter_map(|tool| Some((tool.clone(), change(tool)?)))
            .collect();
        for (tool, (new, stays)) in &all {
            let Some(value) = map.get(tool).cloned() else {
                continue;
            };
            if !stays {
                map.shift_remove(tool);
            }
            if !new.is_empty() {
                map.insert(new.clone(), value);
            }
        }
        !all.is_empty()
    };
    for (file, levels) in [(usage::FILE, 0), (feedback::FILE, 2)] {
        let Ok(mut value) = disk
            .read(file)
            .and_then(|bytes| serde_json::from_slice::<Value>(&bytes).map_err(io::Error::from))
        else {
            continue;
        };
        if visit(&mut value, levels, &change_map) {
            disk.write(file, value.to_string().as_bytes())?;
        }
    }
    Ok(())
}

/// Visits the objects so many levels below; answers whether one was changed.
fn visit(
    value: &mut Value,
    levels: usize,
    change: &impl Fn(&mut serde_json::Map<String, Value>) -> bool,
) -> bool {
    let Some(map) = value.as_object_mut() else {
        return false;
    };
    if levels == 0 {
        return change(map);
    }
    let mut is_changed = false;
    for inner in map.values_mut() {
        is_changed |= visit(inner, levels - 1, change);
    }
    is_changed
}

/// The history is for people: a line that another process adds in this moment may be lost.
fn rename_history(path: &Path, from: &ServerName, to: &ServerName) {
    for path in [put_aside(path), path.to_owned()] {
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        let renamed: String = text
            .split_inclusive('\n')
            .map(|line| rename_line(line, from, to))
            .collect();
        if renamed != text
            && let Err(error) = write_whole(&path, renamed.as_bytes())
        {
            tracing::warn!(%error, "the history keeps the old name of a server");
        }
    }
}

fn rename_line(line: &str, from: &ServerName, to: &ServerName) -> String {
    let entry = serde_json::from_str::<history::HistoryEntry>(line).ok();
    let entry = entry.filter(|it| it.server == from.as_str());
    let renamed = entry.and_then(|entry| {
        let server = to.to_string();
        serde_json::to_string(&history::HistoryEntry { server, ..entry }).ok()
    });
    renamed.map_or_else(|| line.to_owned(), |renamed| renamed + "\n")
}
