//! Commands that read files only: the configuration, a server's log.

use std::path::{Path, PathBuf};

use config::{Config, Environment};
use serde_json::json;
use setup::doctor::{Check, Verdict};

use super::idle_rules;
use crate::{cli::Global, exit::Exit, report, table::wrap};

pub(super) fn print_config_path(global: &Global) -> Exit {
    let asked = global.overrides().config;
    let of_variable = std::env::var_os("PROXY_CONFIG").filter(|path| !path.is_empty());
    let asked = asked.or(of_variable.map(PathBuf::from));
    match asked.or_else(|| config::default_path(&Environment::of_process())) {
        Some(path) => {
            report::print_data(&path.display().to_string());
            Exit::Success
        }
        None => {
            report::say("no home folder is known: set HOME, or name a file with --config");
            Exit::Usage
        }
    }
}

/// Prints the remarks on a valid configuration. A rule that restricts access and matches nothing is a
/// problem: the exit code is 1.
pub(super) fn print_config_check(config: &Config, as_json: bool) -> Exit {
    let (problems, remarks): (Vec<_>, Vec<_>) = idle_rules::check(config)
        .into_iter()
        .partition(|check| check.verdict == Verdict::Problem);
    let problems: Vec<String> = problems.iter().map(to_line).collect();
    let mut notes = config.notes();
    notes.extend(remarks.iter().map(to_line));
    let exit = match problems.as_slice() {
        [] => Exit::Success,
        _ => Exit::Nothing,
    };
    let enabled = config.gateway.enabled().count();
    if as_json {
        report::print_json(&json!({
            "file": config.file,
            "state_dir": config.gateway.state_dir,
            "servers": config.gateway.servers.len(),
            "enabled": enabled,
            "problems": problems,
            "notes": notes,
        }));
        return exit;
    }
    let verdict = match problems.len() {
        0 => "no mistakes".to_owned(),
        _ => format!("rules that match nothing: {}", problems.len()),
    };
    let mut lines = vec![
        format!("{}: {verdict}", config.file.display()),
        format!(
            "servers: {} ({enabled} enabled)",
            config.gateway.servers.len()
        ),
        format!("state: {}", config.gateway.state_dir.display()),
    ];
    lines.extend(problems.iter().map(|problem| format!("problem: {problem}")));
    lines.extend(notes.iter().map(|note| format!("note: {note}")));
    report::print_data(&wrap(&lines.join("\n"), 2));
    exit
}

fn to_line(check: &Check) -> String {
    let next = check.next.as_deref().unwrap_or_default();
    format!("{}: {} ({next})", check.about, check.found)
}

/// Prints the kept part of a server's stderr.
pub(super) fn print_server_log(
    config: &Config,
    global: &Global,
    server: &str,
    lines: Option<usize>,
) -> Exit {
    let Some(known) = config
        .gateway
        .servers
        .iter()
        .find(|it| it.spec.name.as_str() == server)
    else {
        let names = config.gateway.servers.iter();
        let names: Vec<&str> = names.map(|server| server.spec.name.as_str()).collect();
        report::say(&format!(
            "error: no server `{server}`\nhint: there are {}",
            names.join(", ")
        ));
        return Exit::Usage;
    };
    let newest = fleet::log_path(&gateway::logs(&config.gateway.state_dir), &known.spec.name);
    let shown = read_last_lines(&newest, lines);
    if global.json {
        report::print_json(&json!({"server": server, "lines": shown}));
    } else if !shown.is_empty() {
        report::print_data(&shown.join("\n"));
    }
    if shown.is_empty() {
        report::say(&format!("`{server}` has written nothing to stderr"));
        return Exit::Nothing;
    }
    Exit::Success
}

/// Returns the last lines of a log, including the rotated file.
pub(super) fn read_last_lines(newest: &Path, lines: Option<usize>) -> Vec<String> {
    let older = newest.with_extension("log.1");
    let texts = [&older, newest].map(|path| std::fs::read_to_string(path).unwrap_or_default());
    let text = texts.concat();
    let all: Vec<&str> = text.lines().collect();
    let shown = &all[all.len().saturating_sub(lines.unwrap_or(usize::MAX))..];
    shown.iter().map(ToString::to_string).collect()
}
