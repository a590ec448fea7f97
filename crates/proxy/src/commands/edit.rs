//! Changes of the configuration file.

use std::io;

use config::{
    Environment,
    edit::{Change, Document, EditError},
};
use setup::moving::difference;

use crate::{
    cli::global::Global,
    exit::{Exit, refuse},
    report,
};

/// Changes the configuration file, or reports why it cannot be changed. A running daemon applies the
/// change by itself.
pub(super) fn edit(
    global: &Global,
    edit: impl FnMut(&mut Document) -> Result<String, EditError>,
) -> anyhow::Result<Exit> {
    let change = change_with(global, edit, |_, _, write| write())?;
    report::say(&change.value);
    Ok(Exit::Success)
}

/// Changes the configuration file as [`config::edit::change_with`] does.
pub(super) fn change_with<T>(
    global: &Global,
    edit: impl FnMut(&mut Document) -> Result<T, EditError>,
    commit: impl FnMut(&T, &Document, &mut dyn FnMut() -> io::Result<()>) -> io::Result<()>,
) -> anyhow::Result<Change<T>> {
    let (overrides, env) = (global.overrides(), Environment::of_process());
    let change = config::edit::change_with(&overrides, &env, edit, commit);
    let change = change.map_err(|error| match error {
        EditError::Io { .. } | EditError::Busy(_) | EditError::Outrun(_) => error.into(),
        EditError::Mistakes(_) => Exit::Usage.with(error.to_string()),
        error => refuse(error),
    })?;
    if let Some(mistakes) = &change.mistakes {
        report::say(&format!("{mistakes}\nthe file had these mistakes before"));
    }
    Ok(change)
}

pub(super) fn read(global: &Global) -> anyhow::Result<Document> {
    let path = config::file_path(&global.overrides(), &Environment::of_process());
    let path = path.map_err(|error| Exit::Usage.with(error.to_string()))?;
    Document::read(&path).map_err(refuse)
}

/// Prints the change of the file that is not written.
pub(super) fn print_difference(document: &Document) {
    let shown = difference(document.path(), document.before(), &document.text());
    report::print_data(&shown);
}
