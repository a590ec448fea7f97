//! `proxy add` with a file, stdin, JSON or `--import`: adds servers of files and clients to the configuration.

mod manifest;

use std::{fs, path::Path};

use config::{
    Environment,
    edit::{Change, Document},
};
use serde_json::json;
use setup::moving::{
    Home, ImportOptions, LeftOut, Own, discover, get, read_any_file, read_piped, receive, sort_out,
};

use super::{
    edit,
    moving::{
        ask_servers, find_home, find_own, list_remarks, names_of, render_servers, say_all, to_json,
    },
    secret,
};
use crate::{
    cli::global::Global,
    exit::{Exit, refuse},
    report,
};

/// Returns true for stdin, for JSON, and for the path of a file: names of servers have neither dots nor
/// slashes.
pub(super) fn holds_servers(name: &str) -> bool {
    let is_path = name.contains(['.', '/', '\\']) && Path::new(name).exists();
    name == "-" || name.starts_with('{') || is_path
}

/// Adds the servers of clients, files, stdin and texts; without any, those of every client.
pub(super) fn run(
    global: &Global,
    from: &[String],
    (dry_run, is_everywhere): (bool, bool),
) -> anyhow::Result<Exit> {
    if let [file] = from
        && let Some(entries) = manifest::read(file)
    {
        return manifest::import(global, &entries, dry_run);
    }
    import(global, from, (dry_run, is_everywhere))
}

fn import(
    global: &Global,
    from: &[String],
    (dry_run, is_everywhere): (bool, bool),
) -> anyhow::Result<Exit> {
    let env = Environment::of_process();
    let (home, own) = (find_home(&env)?, find_own(global, &env)?);
    let (taken, mut left) = collect(from, &home, &own).map_err(refuse)?;
    let overrides = global.overrides();
    let receive = |document: &mut Document| {
        let stored = secret::list_values(global);
        let options = ImportOptions {
            is_everywhere,
            stored: Some(&stored),
        };
        receive(document, taken.clone(), &home, &overrides, &env, options)
    };
    if dry_run {
        let mut document = edit::read(global)?;
        let receiving = receive(&mut document);
        left.extend(receiving.left);
        edit::print_difference(&document);
        say_all(&list_remarks(&receiving.received, &left));
        return Ok(Exit::Success);
    }
    let Change { value, .. } = edit::change_with(
        global,
        |document| Ok(receive(document)),
        |receiving, _, write| secret::keep_with(global, &receiving.secrets, write),
    )?;
    left.extend(value.left);
    let received = value.received;
    let asked = ask_servers(global, names_of(&received, |it| !it.was_there))?;
    if global.json {
        let (servers, left) = to_json(&received, &left);
        report::print_json(&json!({"servers": servers, "left_out": left}));
    } else {
        if !received.is_empty() {
            report::print_data(&render_servers(&received));
        }
        say_all(&list_remarks(&received, &left));
    }
    let exit = if global.json {
        Exit::Success
    } else {
        asked.print()
    };
    if received.is_empty() {
        return Err(Exit::Nothing.with("nothing was imported"));
    }
    Ok(exit)
}

type Collected = (Vec<setup::moving::ImportedServer>, Vec<LeftOut>);

fn collect(from: &[String], home: &Home, own: &Own) -> Result<Collected, String> {
    if from.is_empty() {
        let found = discover(home, &[], own, true);
        say_all(&found.mistakes);
        return Ok((found.taken, found.left));
    }
    let mut entries = Vec::new();
    for name in from {
        if let Some(client) = get(name).filter(|_| !Path::new(name).exists()) {
            let found = discover(home, std::slice::from_ref(&client.id), own, true);
            say_all(&found.mistakes);
            if found.installed.is_empty() {
                return Err(format!(
                    "{} is not installed here\nhint: name its file instead",
                    client.name
                ));
            }
            let all = found.taken.into_iter().flat_map(|it| it.entries);
            entries.extend(all.chain(found.left.into_iter().map(|it| it.entry)));
            continue;
        }
        let read = if name == "-" {
            read_piped(std::io::stdin().lock())
        } else if name.starts_with('{') {
            read_piped(name.as_bytes())
        } else if is_pipe(name) {
            return Err(format!(
                "{name} is a pipe, not a file\nhint: write to stdin instead: COMMAND | proxy add -"
            ));
        } else if Path::new(name).exists() {
            read_any_file(Path::new(name), home)
        } else {
            return Err(describe_unknown(name));
        };
        entries.extend(read.map_err(|error| format!("{name}: {error}"))?);
    }
    Ok(sort_out(&entries, home, own))
}

/// Returns true if the name is a pipe that the shell made for a command: `proxy add <(COMMAND)`.
fn is_pipe(name: &str) -> bool {
    fs::metadata(name).is_ok_and(|about| files::is_pipe(&about))
}

/// Renders the error for a name that is neither a client nor a file.
pub(super) fn describe_unknown(name: &str) -> String {
    let ids = setup::moving::list()
        .iter()
        .map(|client| client.id.as_str());
    let ids: Vec<&str> = ids.collect();
    let near = tool::near(name, ids.iter().copied(), 1);
    let hint = match near.first() {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the clients are {}", ids.join(", ")),
    };
    format!("`{name}` is neither a known client nor a file\nhint: {hint}")
}
