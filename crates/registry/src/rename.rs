//! Renames a server in the registry.

use std::{fs, io, path::Path};

use files::{put_aside, write_whole};
use serde_json::Value;
use tool::ServerName;

use crate::{
    RegistryError,
    catalog::Records,
    disk::{Disk, snapshot_path},
    feedback, history,
    registry::Registry,
    requests,
    snapshot::renamed,
    usage,
};

impl Registry {
    /// Copies the data of the server `from` to `to`: its pins, snapshot and record, its call counts, its
    /// search feedback and its example requests.
    ///
    /// A rename has three steps: `adopt_server`, a write of the configuration, and
    /// [`Registry::finish_rename`]. After a crash between two steps the pins exist under both names or
    /// under the old one, so a refused or held tool stays blocked under either name. Every step may be
    /// repeated. Pins of a removed server named `to` are replaced, so check first that no server `to` is
    /// configured. For a server that was never surveyed this does nothing. Fails without a change if the
    /// pins cannot be written ([`Registry::pin_trouble`] says why).
    ///
    /// Durable when it returns; waits for other writers. The registry does not own logs, logins and rules
    /// of the configuration.
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
        // Written before the record: without pins the record would count as a server that has lost
        // them.
        book.write(disk, &records)?;
        change_tools(disk, from, Some(to))?;
        if let Some(record) = records.servers.get(from.as_str()) {
            let mut record = record.clone();
            if let Some(file_name) = record.snapshot.as_deref()
                && let Some(new) = renamed(file_name, to)
            {
                // A damaged snapshot is also detected under the new name.
                if let Ok(bytes) = disk.read(&snapshot_path(file_name)) {
                    disk.write(&snapshot_path(&new), &bytes)?;
                }
                record.snapshot = Some(new);
            }
            records.servers.insert(to.to_string(), record);
        }
        Ok(book.write_with(disk, &records)?)
    }

    /// Finishes a rename after the configuration was written: removes the data of the old name, including
    /// pins, and renames its lines in the history. Does nothing for a server that was not adopted, because
    /// its pins would be lost.
    ///
    /// Durable when it returns; waits for other writers.
    pub fn finish_rename(&self, from: &ServerName, to: &ServerName) -> Result<(), RegistryError> {
        let disk = self.disk();
        let _turn = disk.take_turn()?;
        let (mut records, mut book) = Records::read_with_pins(disk);
        let is_adopted = book.get(from.as_str()).is_none() || book.get(to.as_str()).is_some();
        if !is_adopted {
            return Ok(());
        }
        rename_history(&disk.path(history::FILE), from, to);
        change_tools(disk, from, None)?;
        records.servers.remove(from.as_str());
        book.remove(from.as_str());
        Ok(book.write_with(disk, &records)?)
    }
}

/// Copies the data by tool, `server/tool`, of a server to its new name; without one, removes it. The old
/// counts stay until the rename is finished. Duplicate counts are harmless because only one of the names is
/// configured.
fn change_tools(disk: &Disk, from: &ServerName, to: Option<&ServerName>) -> io::Result<()> {
    let prefix = format!("{from}/");
    for file in [usage::FILE, feedback::FILE, requests::FILE] {
        let bytes = disk.read(file).unwrap_or_default();
        let Ok(Value::Object(mut map)) = serde_json::from_slice(&bytes) else {
            continue;
        };
        let own = map.iter().filter_map(|(tool, value)| {
            let name = tool.strip_prefix(&prefix)?;
            Some((tool.clone(), name.to_owned(), value.clone()))
        });
        let own: Vec<(String, String, Value)> = own.collect();
        if own.is_empty() {
            continue;
        }
        for (tool, name, value) in own {
            match to {
                Some(to) => drop(map.insert(format!("{to}/{name}"), value)),
                None => drop(map.shift_remove(&tool)),
            }
        }
        disk.write(file, Value::Object(map).to_string().as_bytes())?;
    }
    Ok(())
}

/// Changes the name in the history, which is for people: a line that another process adds
/// concurrently may be lost.
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
