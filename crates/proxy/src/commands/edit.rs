//! `proxy remove`, `enable`, `disable`, `rename`: what changes in the configuration file.

use config::{
    ConfigError, Environment, Mistake,
    edit::{Document, EditError},
};
use tool::ServerName;

use crate::{cli::Global, exit::Exit, report};

pub(super) fn remove(global: &Global, servers: &[String]) -> anyhow::Result<Exit> {
    edit(global, |document| {
        for server in servers {
            document.remove_server(server)?;
        }
        Ok(format!("removed: {}", servers.join(", ")))
    })
}

pub(super) fn set_enabled(
    global: &Global,
    servers: &[String],
    enabled: bool,
) -> anyhow::Result<Exit> {
    let state = if enabled { "enabled" } else { "disabled" };
    edit(global, |document| {
        let mut changed = Vec::new();
        for server in servers {
            if document.set_enabled(server, enabled)? {
                changed.push(server.as_str());
            }
        }
        Ok(if changed.is_empty() {
            format!("{state} already: {}", servers.join(", "))
        } else {
            format!("{state}: {}", changed.join(", "))
        })
    })
}

pub(super) fn rename(global: &Global, from: &str, to: &str) -> anyhow::Result<Exit> {
    let to: ServerName = match to.parse() {
        Ok(to) => to,
        Err(error) => {
            report::say(&format!("error: {error}"));
            return Ok(Exit::Usage);
        }
    };
    edit(global, |document| {
        document.rename_server(from, &to)?;
        Ok(format!(
            "renamed: `{from}` is `{to}`; it is asked for its tools anew"
        ))
    })
}

/// Makes a change of the file, or says why not and leaves it as it is. A daemon that runs takes
/// the change in by itself.
pub(super) fn edit(
    global: &Global,
    change: impl FnOnce(&mut Document) -> Result<String, EditError>,
) -> anyhow::Result<Exit> {
    let Some(mut document) = open(global) else {
        return Ok(Exit::Usage);
    };
    let told = match change(&mut document) {
        Ok(told) => told,
        Err(error) => {
            report::say(&format!("error: {error}"));
            return Ok(Exit::Usage);
        }
    };
    if !write(global, &document)? {
        return Ok(Exit::Usage);
    }
    report::say(&told);
    Ok(Exit::Success)
}

/// The configuration file to be changed; what keeps it from that was said.
pub(super) fn open(global: &Global) -> Option<Document> {
    let read = config::file_path(&global.overrides(), &Environment::of_process())
        .map_err(|error| error.to_string())
        .and_then(|path| Document::read(&path).map_err(|error| format!("error: {error}")));
    read.inspect_err(|why| report::say(why)).ok()
}

/// Writes the document where that brings no new mistake into it; what it would bring was said.
/// Mistakes that were there before stay, and are told.
pub(super) fn write(global: &Global, document: &Document) -> anyhow::Result<bool> {
    if !document.is_changed() {
        return Ok(true);
    }
    let (overrides, env) = (global.overrides(), Environment::of_process());
    let before = Document::read(document.path())?;
    let count = |checked: Result<(), Vec<Mistake>>| checked.err().unwrap_or_default();
    let (before, after) = (
        count(before.check(&overrides, &env)),
        count(document.check(&overrides, &env)),
    );
    let is_new = |it: &Mistake| {
        !before
            .iter()
            .any(|old| old.what == it.what && old.key == it.key)
    };
    let error = |mistakes| ConfigError {
        file: document.path().to_owned(),
        mistakes,
    };
    let new: Vec<Mistake> = after.iter().filter(|it| is_new(it)).cloned().collect();
    if !new.is_empty() {
        report::say(&format!("{}\nnothing was changed", error(new)));
        return Ok(false);
    }
    document.write()?;
    if !after.is_empty() {
        report::say(&format!("{}\nthese were there before", error(after)));
    }
    Ok(true)
}
