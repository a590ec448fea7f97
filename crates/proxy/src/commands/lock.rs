//! `proxy review --lock` and `proxy review --verify`: the lock file of a team.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use ::config::Config;
use anyhow::{Context as _, bail};
use files::{Replaced, read_text_within, replace_unchanged};
use futures::StreamExt as _;
use gateway::{Gateway, survey};
use printable::count_of;
use registry::{LockDifference, News, ToolLock};
use serde_json::json;
use tool::{ChangeKind, ServerName};

use super::{difference::show_difference, load_config, with_gateway, with_surveyed_gateway};
use crate::{cli::global::Global, exit::Exit, report};

/// The largest lock file that is read, in bytes: 10,000 definitions of 6 KB.
const FILE_BYTES_MAX: usize = 64 * 1024 * 1024;

const NAMES_MAX: usize = 10;

fn place_of(file: Option<&PathBuf>, config: &Config) -> PathBuf {
    file.map_or_else(|| config.file.with_extension("lock"), Clone::clone)
}

/// Reads a lock file; `None` if there is none.
fn read(file: &Path) -> anyhow::Result<Option<(String, ToolLock)>> {
    let text = match read_text_within(file, FILE_BYTES_MAX) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| file.display().to_string()),
    };
    let lock = ToolLock::parse(&text);
    let lock = lock.with_context(|| format!("{} cannot be used", file.display()))?;
    Ok(Some((text, lock)))
}

/// Returns the enabled servers; saved scripts are the user's own and are not locked.
fn enabled(gateway: &Gateway) -> Vec<ServerName> {
    let settings = gateway.settings();
    settings.enabled().map(|it| it.spec.name.clone()).collect()
}

/// Writes the accepted definitions of all servers into the file.
pub(super) fn write(global: &Global, file: Option<&PathBuf>) -> anyhow::Result<Exit> {
    let file = place_of(file, &load_config(global)?);
    with_surveyed_gateway(global, async |gateway| write_to(&file, gateway, global))
}

fn write_to(file: &Path, gateway: &Gateway, global: &Global) -> anyhow::Result<Exit> {
    let old = read(file).context("hint: remove the file to write a new one")?;
    let (text, old) = old.map_or((None, ToolLock::default()), |(text, it)| (Some(text), it));
    let registry = &gateway.catalog.registry;
    let made = registry::lock(registry, &old, &enabled(gateway));
    let before = text.as_deref().map(str::as_bytes);
    let (shown, text) = (file.display(), made.lock.to_text());
    match replace_unchanged(file, before, text.as_bytes())? {
        Replaced::Yes => {}
        Replaced::ChangedMeanwhile => {
            bail!("{shown} was changed meanwhile; nothing was written")
        }
    }
    let servers = made.lock.servers().count();
    if global.json {
        report::print_json(&json!({"file": shown.to_string(), "servers": servers,
                "waiting": made.waiting, "unknown": made.unknown}));
    } else {
        report::print_data(&format!("{shown}: {}", count_of(servers, "server")));
    }
    if !made.waiting.is_empty() {
        let names = some_of(&made.waiting);
        report::say(&format!(
            "not in the file, since nobody has accepted them: {names}\nhint: proxy review"
        ));
    }
    if made.unknown.is_empty() {
        return Ok(Exit::Success);
    }
    report::say(&format!(
        "their tools are unknown: {}\nhint: proxy reindex",
        some_of(&made.unknown)
    ));
    Ok(Exit::Partial)
}

fn some_of(names: &[String]) -> String {
    let shown = names.iter().take(NAMES_MAX);
    let shown = shown.map(|it| printable::one_line(it));
    let shown = shown.collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMES_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Compares what the servers answer with the file. `shows_lines`: prints changed definitions line by line.
pub(super) fn verify(
    global: &Global,
    file: Option<&PathBuf>,
    shows_lines: bool,
) -> anyhow::Result<Exit> {
    let file = place_of(file, &load_config(global)?);
    let lock = read(&file).map_err(|error| {
            Exit::Unknown.with(format!(
                "error: {}\nhint: restore the file from your repository, or remove it and run `proxy review --lock`",
                report::describe(&error)
            ))
        })?;
    let missing = format!(
        "error: no lock file {}\nhint: proxy review --lock",
        file.display()
    );
    let (_, lock) = lock.ok_or_else(|| Exit::Unknown.with(missing))?;
    with_gateway(global, async |gateway| {
        compare(gateway, global, &lock, shows_lines).await
    })
}

async fn compare(
    gateway: &std::sync::Arc<Gateway>,
    global: &Global,
    lock: &ToolLock,
    shows_lines: bool,
) -> anyhow::Result<Exit> {
    let enabled = enabled(gateway);
    let known = enabled.iter().map(ServerName::as_str).chain(lock.servers());
    let servers: BTreeSet<String> = known.map(str::to_owned).collect();
    let servers = Vec::from_iter(servers);
    let surveys = ask(gateway, enabled, global).await;
    let registry = &gateway.catalog.registry;
    let found = registry::verify(registry, lock, &servers, &surveys);
    let (verdict, exit) = judge(&found);
    if global.json {
        report::print_json(&json!({"verdict": verdict, "servers": servers, "differences": found}));
        return Ok(exit);
    }
    if !found.is_empty() {
        report::print_data(&render(&found, shows_lines));
    }
    report::say(&format!(
        "{verdict}: {} compared",
        count_of(servers.len(), "server")
    ));
    Ok(exit)
}

fn render(found: &[LockDifference], shows_lines: bool) -> String {
    let mut lines = Vec::new();
    for (nth, it) in found.iter().enumerate() {
        let name = printable::one_line(&it.name());
        let kind = it.kind.map_or("unknown", ChangeKind::as_str);
        lines.push(format!(
            "{kind:8}  {name}  {}",
            printable::one_line(&it.text)
        ));
        let next = found.get(nth + 1);
        let is_last = next.is_none_or(|next| next.name() != it.name());
        if let Some((before, now)) = it.texts.as_ref().filter(|_| shows_lines && is_last) {
            lines.push(show_difference(&name, Some(before), now));
        }
    }
    lines.join("\n")
}

/// Asks these servers for their tools. The answers are not stored.
async fn ask(
    gateway: &std::sync::Arc<Gateway>,
    enabled: Vec<ServerName>,
    global: &Global,
) -> Vec<News> {
    let bar = report::make_bar(enabled.len(), "servers", global.quiet || global.json);
    let mut asked = Vec::new();
    let answers = survey::survey(&gateway.catalog, enabled, |_| 0);
    let mut answers = std::pin::pin!(answers);
    while let Some(answer) = answers.next().await {
        bar.inc(1);
        asked.push(answer.news);
    }
    bar.finish_and_clear();
    asked
}

/// The word and the exit code for all differences: the one that asks most of a reader.
fn judge(found: &[LockDifference]) -> (&'static str, Exit) {
    let has = |kind: Option<ChangeKind>| found.iter().any(|it| it.kind == kind);
    if has(Some(ChangeKind::Breaking)) || has(Some(ChangeKind::Wording)) {
        ("needs a person", Exit::NeedsPerson)
    } else if has(None) {
        ("unknown", Exit::Unknown)
    } else if has(Some(ChangeKind::Additive)) {
        ("additive", Exit::Additive)
    } else {
        ("ready", Exit::Success)
    }
}
