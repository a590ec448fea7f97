//! The only code that changes the configuration file for our commands.

use std::{
    cell::Cell,
    io,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use files::{Lock, Replaced};

use super::{Document, EditError};
use crate::{ConfigError, Environment, Mistake, Overrides, file_path};

/// The longest wait for other commands that change the same file: each holds the lock for two syncs.
const TURN_WAIT: Duration = Duration::from_secs(30);

/// The number of times that a change is made again because another program wrote the file meanwhile. A
/// program that writes it without pause is no editor.
const ATTEMPTS_MAX: usize = 20;

/// An editor that writes a file in place empties it first. A file that is blank, or that cannot be
/// changed as asked, is read again after this time.
const SETTLING: Duration = Duration::from_millis(50);

/// The result of a change.
#[derive(Debug)]
pub struct Change<T> {
    /// The result of the edit.
    pub value: T,
    /// The file.
    pub path: PathBuf,
    /// Mistakes that the file had before the change and still has.
    pub mistakes: Option<ConfigError>,
}

/// Changes the configuration file: takes the lock, reads the file, applies `edit`, refuses new
/// mistakes, compares the file with what was read, and replaces it durably. `edit` is applied
/// again, to the new text, if another program wrote the file meanwhile.
pub fn change<T>(
    overrides: &Overrides,
    env: &Environment,
    edit: impl FnMut(&mut Document) -> Result<T, EditError>,
) -> Result<Change<T>, EditError> {
    change_with(overrides, env, edit, |_, _, write| write())
}

/// Does the same with work that belongs before or after the write, under the lock. `commit` calls the
/// function that writes, and returns its error, after undoing its own work: the change may be made
/// again. It is not called if the edit changes nothing.
pub fn change_with<T>(
    overrides: &Overrides,
    env: &Environment,
    mut edit: impl FnMut(&mut Document) -> Result<T, EditError>,
    mut commit: impl FnMut(&T, &Document, &mut dyn FnMut() -> io::Result<()>) -> io::Result<()>,
) -> Result<Change<T>, EditError> {
    let path = file_path(overrides, env).map_err(EditError::Broken)?;
    let io_error = |error| EditError::Io {
        path: path.clone(),
        error,
    };
    let target = files::resolve(&path).map_err(io_error)?;
    // A missing folder is not locked: it is created when the file is written, and no one else uses it.
    let is_lockable = target.parent().is_some_and(Path::is_dir);
    let _turn = if is_lockable {
        Some(take_turn(&path, &target)?)
    } else {
        None
    };
    for _ in 0..ATTEMPTS_MAX {
        let mut document = read(&path)?;
        let edited = edit(&mut document).and_then(|value| {
            let mistakes = check(&document, overrides, env)?;
            Ok((value, mistakes))
        });
        let (value, mistakes) = match edited {
            Ok(edited) => edited,
            Err(_) if is_being_written(&document) => continue,
            Err(error) => return Err(error),
        };
        if document.is_changed() {
            let is_outrun = Cell::new(false);
            let mut write = || {
                let (before, after) = (document.before.as_deref(), document.text());
                let before = before.map(str::as_bytes);
                match files::replace_unchanged(&path, before, after.as_bytes())? {
                    Replaced::Yes => Ok(()),
                    Replaced::ChangedMeanwhile => {
                        is_outrun.set(true);
                        Err(io::Error::other("another program wrote it meanwhile"))
                    }
                }
            };
            let committed = commit(&value, &document, &mut write);
            if is_outrun.get() {
                settle();
                continue;
            }
            committed.map_err(io_error)?;
        }
        return Ok(Change {
            value,
            path: path.clone(),
            mistakes,
        });
    }
    Err(EditError::Outrun(path))
}

fn take_turn(path: &Path, target: &Path) -> Result<Lock, EditError> {
    Lock::take_beside(target, TURN_WAIT).map_err(|error| {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::TimedOut => EditError::Busy(path),
            _ => EditError::Io { path, error },
        }
    })
}

/// Reads the file, and reads it again if it may be in the middle of being written.
fn read(path: &Path) -> Result<Document, EditError> {
    let is_odd = |read: &Result<Document, EditError>| match read {
        Ok(document) => document.before().is_some_and(|text| text.trim().is_empty()),
        Err(error) => matches!(error, EditError::Broken(_)),
    };
    let first = Document::read(path);
    if !is_odd(&first) {
        return first;
    }
    settle();
    Document::read(path)
}

#[expect(
    clippy::disallowed_methods,
    reason = "an editor tells nobody when it is done"
)]
fn settle() {
    thread::sleep(SETTLING);
}

/// Returns true if the file changes within a moment after it was read.
fn is_being_written(document: &Document) -> bool {
    settle();
    Document::read(document.path()).is_ok_and(|now| now.before() != document.before())
}

/// Returns the mistakes that were in the file before, or an error with those that the change would
/// cause.
fn check(
    document: &Document,
    overrides: &Overrides,
    env: &Environment,
) -> Result<Option<ConfigError>, EditError> {
    if !document.is_changed() {
        return Ok(None);
    }
    let Err(mistakes) = document.check(overrides, env) else {
        return Ok(None);
    };
    let before = document.before().unwrap_or_default();
    let before = document.read_text(before, overrides, env);
    let before = before.err().unwrap_or_default();
    let new = mistakes.iter().filter(|it| !it.is_in(&before)).cloned();
    let new: Vec<Mistake> = new.collect();
    if new.is_empty() {
        return Ok(Some(document.error(mistakes)));
    }
    Err(EditError::Mistakes(document.error(new)))
}

#[cfg(test)]
mod tests;
