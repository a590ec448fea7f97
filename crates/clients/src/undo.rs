//! Restoring files byte for byte, if they are unchanged since.

use std::{fs, io, path::PathBuf, time::Duration};

use files::Lock;

use crate::{
    change::ChangedEntry,
    command::{Run, commands},
    disk::{delete, digest, read, write},
    journal::{Journal, Record},
};

/// The outcome for one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undone {
    /// The file.
    pub file: PathBuf,
    /// The extent to which it is restored.
    pub outcome: UndoOutcome,
}

/// The extent to which a file is restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoOutcome {
    /// The file is restored byte for byte.
    Whole,
    /// The file did not exist before, and is deleted.
    Gone,
    /// The file has changed since: its client's own program removed our entry and added the original
    /// ones again.
    Entries,
    /// The file stays unchanged for this reason. The path is the copy of its earlier text, if there
    /// is one.
    Left(String, Option<PathBuf>),
}

impl Journal {
    /// Undoes every change, the newest first. Changes that cannot be undone stay in the journal.
    pub fn undo(&mut self, run: &mut Run<'_>) -> io::Result<Vec<Undone>> {
        let mut all = Vec::new();
        if self.is_empty() {
            // The run was interrupted before its first change.
            delete(self.path())?;
        }
        for index in (0..self.changes.len()).rev() {
            let record = self.changes[index].clone();
            let outcome = undo_one(&record, run)
                .unwrap_or_else(|why| UndoOutcome::Left(why.to_string(), record.backup.clone()));
            if !matches!(outcome, UndoOutcome::Left(..)) {
                if let (Some(backup), UndoOutcome::Whole) = (&record.backup, &outcome) {
                    delete(backup)?;
                }
                self.forget(index)?;
            }
            all.push(Undone {
                file: record.file,
                outcome,
            });
        }
        Ok(all)
    }
}

/// The longest wait for another of our commands that changes the same file.
const TURN_WAIT: Duration = Duration::from_secs(30);

fn undo_one(record: &Record, run: &mut Run<'_>) -> io::Result<UndoOutcome> {
    let _turn = take_turn(record)?;
    let bytes = read(&record.file)?;
    let found = bytes.as_ref().map(|bytes| digest(bytes));
    if found == record.before {
        return Ok(match found {
            Some(_) => UndoOutcome::Whole,
            None => UndoOutcome::Gone,
        });
    }
    if found.as_ref() == Some(&record.after) {
        return put_back(record, &bytes.unwrap_or_default());
    }
    undo_by_program(record, run).ok_or_else(|| io::Error::other(describe_change(record)))
}

/// Takes the lock of our own configuration, which one command at a time can change.
fn take_turn(record: &Record) -> io::Result<Option<Lock>> {
    if !record.is_ours || !record.file.exists() {
        return Ok(None);
    }
    Lock::take_beside(&files::resolve(&record.file)?, TURN_WAIT).map(Some)
}

fn put_back(record: &Record, found: &[u8]) -> io::Result<UndoOutcome> {
    let Some(backup) = &record.backup else {
        delete(&record.file)?;
        for folder in record.folders.iter().rev() {
            // A folder with other files is not empty, and stays.
            let _ = fs::remove_dir(folder);
        }
        return Ok(UndoOutcome::Gone);
    };
    let unreadable = |error| io::Error::other(format!("its backup cannot be read: {error}"));
    let bytes = fs::read(backup).map_err(unreadable)?;
    if record.before.as_ref() != Some(&digest(&bytes)) {
        return Err(io::Error::other("its backup was changed"));
    }
    write(&record.file, Some(found), &bytes)?;
    Ok(UndoOutcome::Whole)
}

/// Undoes a change by the client's own program. Returns `None` if there is no such program or it
/// fails.
fn undo_by_program(record: &Record, run: &mut Run<'_>) -> Option<UndoOutcome> {
    let calls = commands(record.program.as_deref()?, &record.added, &record.removed);
    calls.iter().try_for_each(run).ok()?;
    Some(UndoOutcome::Entries)
}

/// Describes why a file is not restored, and the edits that its owner can make instead.
fn describe_change(record: &Record) -> String {
    let list = |entries: &[ChangedEntry], what: &str| {
        let names: Vec<String> = entries
            .iter()
            .map(|entry| format!("`{}`", entry.name))
            .collect();
        (!names.is_empty()).then(|| format!("{what} {}", names.join(", ")))
    };
    let edits = [list(&record.added, "remove"), list(&record.removed, "add")];
    let edits: Vec<String> = edits.into_iter().flatten().collect();
    match edits.join(" and ").as_str() {
        "" => "it was changed since".to_owned(),
        edits => format!("it was changed since; {edits} yourself"),
    }
}

#[cfg(test)]
mod tests;
