//! `proxy secret`: secrets that the configuration names.

use std::io::{IsTerminal as _, Read as _};

use anyhow::Context as _;
use config::Environment;
use secrets::{Secret, SecretName, Store};
use serde_json::json;

use super::{event_loop::run_async, status::have_looked_again};
use crate::{
    cli::{Global, Secret as Action},
    exit::Exit,
    report,
};

/// More than this is no secret.
const STDIN_BYTES_MAX: u64 = 1024 * 1024;

pub(super) fn change(global: &Global, action: Action) -> anyhow::Result<Exit> {
    let Some(store) = open(global) else {
        return Ok(Exit::Usage);
    };
    match action {
        Action::Set { name } => {
            let exit = set(&store, &name)?;
            run_async(have_looked_again(global))?;
            Ok(exit)
        }
        Action::List => list(&store, global),
        Action::Rm { names } => remove(&store, &names),
    }
}

/// The store of this configuration. A file that is not there yet is no reason to keep none.
fn open(global: &Global) -> Option<Store> {
    let (overrides, env) = (global.overrides(), Environment::of_process());
    let is_there = config::file_path(&overrides, &env).is_ok_and(|file| file.exists());
    let config = if is_there {
        config::load(&overrides, &env)
    } else {
        config::load_without_file(&overrides, &env)
    };
    match config {
        Ok(config) => Some(Store::of(&config.gateway.private_files())),
        Err(error) => {
            report::say(&error.to_string());
            None
        }
    }
}

/// Keeps the secrets that the configuration is about to name.
pub(super) fn keep(global: &Global, secrets: &[(SecretName, Secret)]) -> anyhow::Result<()> {
    if secrets.is_empty() {
        return Ok(());
    }
    let store = open(global).context("no secret can be kept, so nothing was changed")?;
    for (name, secret) in secrets {
        store.set(name, secret)?;
    }
    Ok(())
}

/// The value is never an argument: everybody on the machine can read those.
fn set(store: &Store, name: &SecretName) -> anyhow::Result<Exit> {
    let text = if std::io::stdin().is_terminal() {
        report::ask_secret(&format!("{name} (it is not shown)"))?
    } else {
        let mut text = String::new();
        let stdin = std::io::stdin().lock();
        let read = stdin.take(STDIN_BYTES_MAX).read_to_string(&mut text);
        read.context("stdin is no text")?;
        text
    };
    let text = text.trim_end_matches(['\n', '\r']);
    if text.is_empty() {
        report::say(&format!(
            "error: nothing was given for `{name}`\nhint: type it when asked, or: COMMAND | proxy secret set {name}"
        ));
        return Ok(Exit::Usage);
    }
    let was_there = store.set(name, &Secret::new(text))?;
    let what = if was_there { "replaced" } else { "kept" };
    report::say(&format!(
        "{what} `{name}`; write `${{secret:{name}}}` where it belongs"
    ));
    Ok(Exit::Success)
}

fn list(store: &Store, global: &Global) -> anyhow::Result<Exit> {
    let names = store.list()?;
    if global.json {
        report::print_json(&json!({"secrets": names}));
    } else if !names.is_empty() {
        report::print_data(&names.join("\n"));
    }
    if names.is_empty() {
        report::say("no secrets; keep one: proxy secret set NAME");
        return Ok(Exit::Nothing);
    }
    Ok(Exit::Success)
}

fn remove(store: &Store, names: &[SecretName]) -> anyhow::Result<Exit> {
    let mut missing = Vec::new();
    for name in names {
        if !store.remove(name)? {
            missing.push(name.as_str());
        }
    }
    if missing.is_empty() {
        return Ok(Exit::Success);
    }
    report::say(&format!("error: no secret `{}`", missing.join("`, `")));
    Ok(Exit::Nothing)
}
