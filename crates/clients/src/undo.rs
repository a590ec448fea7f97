//! Restoring files: byte for byte if they are unchanged since, else entry by entry.

use std::{fs, io, path::PathBuf, time::Duration};

use files::Lock;

use crate::{
    command::{Run, commands},
    disk::{delete, digest, read, read_file, write},
    document::{self, Format, entry_at},
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
    /// The file has changed since: our entry is removed, the original ones are added again, and the
    /// rest is kept.
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
    match record.format {
        Some(format) => {
            undo_by_program(record, run).map_or_else(|| undo_entries(record, format), Ok)
        }
        None => Err(io::Error::other("it was changed since")),
    }
}

/// Takes the lock of our own configuration, which one command at a time can change.
fn take_turn(record: &Record) -> io::Result<Option<Lock>> {
    if record.format.is_some() || !record.file.exists() {
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
/// fails; the caller then edits the file.
fn undo_by_program(record: &Record, run: &mut Run<'_>) -> Option<UndoOutcome> {
    let calls = commands(record.program.as_deref()?, &record.added, &record.removed);
    calls.iter().try_for_each(run).ok()?;
    Some(UndoOutcome::Entries)
}

fn undo_entries(record: &Record, format: Format) -> io::Result<UndoOutcome> {
    if !record.file.exists() {
        return Err(io::Error::other("it is gone"));
    }
    let found = read_file(&record.file).map_err(io::Error::other)?;
    let mut text = found.clone();
    for added in &record.added {
        let made = added.made.unwrap_or_default();
        let removed = document::remove(&text, format, added.slot(), &added.name, made);
        text = removed.map_err(io::Error::other)?.unwrap_or(text);
    }
    for taken in record.removed.iter().rev() {
        let slot = taken.slot();
        let whole = document::read(&text, format).map_err(io::Error::other)?;
        // An entry that was added again since, perhaps with other values, takes precedence.
        if entry_at(&whole, slot, &taken.name).is_none() {
            let added = document::add(&text, format, slot, &taken.name, &taken.value);
            text = added.map_err(io::Error::other)?.0;
        }
    }
    write(&record.file, Some(found.as_bytes()), text.as_bytes())?;
    Ok(UndoOutcome::Entries)
}

#[cfg(test)]
mod tests;
