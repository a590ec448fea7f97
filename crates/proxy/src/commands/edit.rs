//! Changes of the configuration file.

use std::io;

use anyhow::bail;
use config::{
    Environment,
    edit::{Change, Document, EditError},
};
use setup::moving::difference;

use super::route::settle_daemons;
use crate::{
    cli::global::Global,
    event_loop::run_async,
    exit::{Exit, refuse},
    report,
};

/// Changes the configuration file, or reports why it cannot be changed. Returns when the change is in
/// effect in every running daemon of this configuration.
pub(super) fn edit(
    global: &Global,
    edit: impl FnMut(&mut Document) -> Result<String, EditError>,
) -> anyhow::Result<Exit> {
    let change = change_with(global, edit, |_, _, write| write())?;
    report::say(&change.value);
    Ok(Exit::Success)
}

/// Changes the configuration file as [`config::edit::change_with`] does. Returns when the change is in
/// effect in every running daemon of this configuration, or reports the daemon that has not applied it.
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
    for problem in wait_for_daemons(global)? {
        report::say(&format!(
            "the running daemon has not applied the change: {problem}\nhint: `proxy logs` prints the \
             end of its log"
        ));
    }
    Ok(change)
}

/// Waits until each daemon has applied the file. Returns why others have not. Blocks; a thread of its own has
/// the event loop, because the caller may run on another one.
fn wait_for_daemons(global: &Global) -> anyhow::Result<Vec<String>> {
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| run_async(settle_daemons(global)));
        let waited = waiting.join();
        waited.unwrap_or_else(|_| bail!("cannot wait for the daemon"))
    })
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
