//! `proxy secret`: secrets that the configuration names.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, IsTerminal as _, Read as _},
};

use anyhow::{Context as _, bail};
use clap::Subcommand;
use config::{Config, ConfigError, Environment};
use secrets::{Secret, SecretName, Store};
use serde_json::json;
use setup::moving::Journal;

use super::{
    caller::{find_caller, find_former_caller},
    load_config,
    route::notify_of_logins,
};
use crate::{
    cli::global::Global,
    event_loop::run_async,
    exit::{Exit, refuse},
    report,
};

/// The size limit of a secret.
const STDIN_BYTES_MAX: u64 = 1024 * 1024;

const SET_EXAMPLES: &str = "\
Examples:
  proxy secret set LINEAR_KEY
  pass show linear | proxy secret set LINEAR_KEY
  proxy secret set LINEAR_KEY --for ann";

/// Store secrets outside the configuration
///
/// `${secret:NAME}` in the configuration stands for the secret. Secrets are stored in a file of the
/// state folder that only you can read, unless `secrets.store` says otherwise.
#[derive(Debug, Subcommand)]
pub(crate) enum SecretAction {
    /// Store a secret: typed on a terminal, else read from stdin
    #[command(after_help = SET_EXAMPLES)]
    Set {
        /// Name, as in `${secret:NAME}`
        #[arg(value_name = "NAME")]
        name: SecretName,
        /// Caller over HTTP for whom `${caller:secret:NAME}` is this secret: the name of a token, or
        /// the subject of an OAuth token
        #[arg(long = "for", value_name = "CALLER")]
        caller: Option<String>,
    },
    /// List the names of all secrets
    List,
    /// Remove secrets
    Rm {
        /// Names of the secrets
        #[arg(required = true, value_name = "NAME")]
        names: Vec<SecretName>,
        /// Caller over HTTP whose secrets are removed
        #[arg(long = "for", value_name = "CALLER")]
        caller: Option<String>,
    },
}

impl SecretAction {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Exit> {
        let store = open(global).map_err(|error| Exit::Usage.with(error.to_string()))?;
        match self {
            Self::Set { name, caller } => {
                let kept = name_of(&name, caller.as_deref(), find_caller, global)?;
                set(&store, &name, &kept)?;
                run_async(notify_of_logins(global))?;
                Ok(Exit::Success)
            }
            Self::List => list(&store, global),
            Self::Rm { names, caller } => {
                let names = names.iter();
                let kept =
                    names.map(|it| name_of(it, caller.as_deref(), find_former_caller, global));
                remove(&store, &kept.collect::<Result<Vec<_>, _>>()?)
            }
        }
    }
}

/// Returns the name under which the secret is stored.
fn name_of(
    name: &SecretName,
    caller: Option<&str>,
    find: impl Fn(&Config, &str) -> anyhow::Result<String>,
    global: &Global,
) -> anyhow::Result<SecretName> {
    let Some(caller) = caller else {
        return Ok(name.clone());
    };
    let config = load_config(global)?;
    Ok(name.of_caller(&find(&config, caller)?))
}

/// Opens the store of this configuration. A missing file does not prevent storing a secret.
fn open(global: &Global) -> Result<Store, ConfigError> {
    let (overrides, env) = (global.overrides(), Environment::of_process());
    let is_there = config::file_path(&overrides, &env).is_ok_and(|file| file.exists());
    let config = if is_there {
        config::load(&overrides, &env)?
    } else {
        config::load_without_file(&overrides, &env)?
    };
    Ok(Store::of(&config.gateway.private_files()))
}

/// Opens the store; `None` if that fails, and the reason is printed.
fn open_or_say(global: &Global) -> Option<Store> {
    let store = open(global);
    store
        .inspect_err(|error| report::say(&error.to_string()))
        .ok()
}

/// The names of all stored secrets; empty if they cannot be read: storing one then fails with the
/// reason.
pub(crate) fn names(global: &Global) -> BTreeSet<String> {
    let kept = open_or_say(global).and_then(|store| store.list().ok());
    kept.unwrap_or_default().into_iter().collect()
}

/// The stored secrets by name, without the values that cannot be read.
pub(super) fn list_values(global: &Global) -> BTreeMap<String, Option<Secret>> {
    let Some(store) = open_or_say(global) else {
        return BTreeMap::new();
    };
    let names = store.list().unwrap_or_default().into_iter();
    let value = |name: &String| store.get(&name.parse().ok()?).ok()?;
    names.map(|name| (name.clone(), value(&name))).collect()
}

/// Stores the secrets that the configuration names once `write` has written it, and removes them again
/// if it is not written.
pub(crate) fn keep_with(
    global: &Global,
    secrets: &[(SecretName, Secret)],
    write: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    let kept = keep(global, secrets).map_err(|error| io::Error::other(report::describe(&error)));
    kept.and_then(|()| write()).inspect_err(|_| {
        for (name, _) in secrets {
            // The returned error says more than a second one.
            let _ = open_or_say(global).map(|store| store.remove(name));
        }
    })
}

fn keep(global: &Global, secrets: &[(SecretName, Secret)]) -> anyhow::Result<()> {
    if secrets.is_empty() {
        return Ok(());
    }
    let store = open_or_say(global).context("no secret can be stored, so nothing was changed")?;
    for (name, secret) in secrets {
        store.set(name, secret)?;
    }
    Ok(())
}

/// The outcome for the secrets that a run of `init` stored.
#[derive(Debug, Default)]
pub(super) struct Forgotten {
    pub(super) gone: Vec<String>,
    /// Those that stay, each with the reason.
    pub(super) left: Vec<(String, &'static str)>,
}

/// Removes the secrets that the run of a journal stored, unless the configuration names them or they
/// were set to another value since.
pub(super) fn forget_kept(global: &Global, journal: &mut Journal) -> anyhow::Result<Forgotten> {
    let mut forgotten = Forgotten::default();
    if journal.secrets().is_empty() {
        return Ok(forgotten);
    }
    let text = match config::file_path(&global.overrides(), &Environment::of_process()) {
        Ok(file) => std::fs::read_to_string(file),
        Err(_) => Ok(String::new()),
    };
    let text = match text {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        text => text,
    };
    let is_named = |name: &SecretName| {
        let text = text.as_deref().unwrap_or_default();
        let mut named = text.split("${secret:").skip(1);
        named.any(|it| it.split('}').next().map(str::trim) == Some(name.as_str()))
    };
    let store = open_or_say(global);
    for secret in journal.secrets() {
        let name: SecretName = secret.name.parse()?;
        let kept = store.as_ref().map(|store| store.get(&name));
        let why = match kept {
            Some(Ok(None)) => continue,
            None | Some(Err(_)) => "the secrets cannot be read",
            Some(Ok(Some(_))) if text.is_err() => "the configuration cannot be read",
            Some(Ok(Some(_))) if is_named(&name) => "the configuration names it",
            Some(Ok(Some(kept))) if !journal.is_unchanged(secret, kept.expose()) => {
                "it was set to another value since"
            }
            Some(Ok(Some(_))) => match store.as_ref().map(|store| store.remove(&name)) {
                Some(Ok(_)) => {
                    forgotten.gone.push(secret.name.clone());
                    continue;
                }
                _ => "it cannot be removed",
            },
        };
        forgotten.left.push((secret.name.clone(), why));
    }
    // Undoing more of the run later may allow removing those that stay.
    let is_whole = journal.files().next().is_none();
    let left = |name: &str| forgotten.left.iter().any(|(left, _)| left == name);
    journal.forget_secrets(|secret| is_whole || !left(&secret.name))?;
    Ok(forgotten)
}

/// The value is never an argument: all users of the machine can read arguments.
fn set(store: &Store, name: &SecretName, kept: &SecretName) -> anyhow::Result<()> {
    let text = if io::stdin().is_terminal() {
        report::ask_secret(&format!("{name} (hidden)"))?
    } else {
        let read = io::read_to_string(io::stdin().take(STDIN_BYTES_MAX));
        read.context("stdin is not UTF-8 text")?
    };
    let text = text.trim_end_matches(['\n', '\r']);
    if text.is_empty() {
        return Err(refuse(format!(
            "no value for `{name}`\nhint: type it when asked, or: COMMAND | proxy secret set {name}"
        )));
    }
    let was_there = store.set(kept, &Secret::new(text))?;
    let what = if was_there { "replaced" } else { "stored" };
    let of_caller = if kept == name { "" } else { "caller:" };
    report::say(&format!(
        "{what} `{kept}`; write `${{{of_caller}secret:{name}}}` in the configuration"
    ));
    Ok(())
}

fn list(store: &Store, global: &Global) -> anyhow::Result<Exit> {
    let names = store.list()?;
    if global.json {
        report::print_json(&json!({"secrets": names}));
    } else if !names.is_empty() {
        report::print_data(&names.join("\n"));
    }
    if names.is_empty() {
        return Err(Exit::Nothing.with("no secrets; to store one: proxy secret set NAME"));
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
    if !missing.is_empty() {
        bail!("no secret `{}`", missing.join("`, `"));
    }
    Ok(Exit::Success)
}
