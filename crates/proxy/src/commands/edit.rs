//! Changes of the configuration file.

use std::io;

use config::{
    Environment,
    edit::{Change, Document, EditError},
};

use crate::{cli::global::Global, exit::Exit, report};

/// Changes the configuration file, or reports why it cannot be changed. A running daemon applies the
/// change by itself.
pub(super) fn edit(
    global: &Global,
    edit: impl FnMut(&mut Document) -> Result<String, EditError>,
) -> anyhow::Result<Exit> {
    let Some(change) = change_with(global, edit, |_, _, write| write())? else {
        return Ok(Exit::Usage);
    };
    report::say(&change.value);
    Ok(Exit::Success)
}

/// Changes the configuration file as [`config::edit::change_with`] does. `None` if the change is
/// refused; the reason has been printed.
pub(super) fn change_with<T>(
    global: &Global,
    edit: impl FnMut(&mut Document) -> Result<T, EditError>,
    commit: impl FnMut(&T, &Document, &mut dyn FnMut() -> io::Result<()>) -> io::Result<()>,
) -> anyhow::Result<Option<Change<T>>> {
    let (overrides, env) = (global.overrides(), Environment::of_process());
    let change = match config::edit::change_with(&overrides, &env, edit, commit) {
        Ok(change) => change,
        Err(error @ (EditError::Io { .. } | EditError::Busy(_) | EditError::Outrun(_))) => {
            return Err(error.into());
        }
        Err(error @ EditError::Mistakes(_)) => {
            report::say(&error.to_string());
            return Ok(None);
        }
        Err(error) => {
            report::say(&format!("error: {error}"));
            return Ok(None);
        }
    };
    if let Some(mistakes) = &change.mistakes {
        report::say(&format!("{mistakes}\nthe file had these mistakes before"));
    }
    Ok(Some(change))
}

/// Reads the configuration file. `None` if it cannot be read; the reason has been printed.
pub(super) fn read(global: &Global) -> Option<Document> {
    let read = config::file_path(&global.overrides(), &Environment::of_process())
        .map_err(|error| error.to_string())
        .and_then(|path| Document::read(&path).map_err(|error| format!("error: {error}")));
    read.inspect_err(|why| report::say(why)).ok()
}
