//! `proxy log`: the stderr of a server.

use std::path::Path;

use clap::Args;
use clap_complete::ArgValueCompleter;
use serde_json::{Value, json};

use super::{login::find_server, with_config};
use crate::{
    cli::{complete::complete_servers, global::Global},
    exit::Exit,
    report,
};

/// Print a server's stderr, oldest line first
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// Server of the configuration
    #[arg(value_name = "SERVER", add = ArgValueCompleter::new(complete_servers))]
    server: String,
    /// Print only the last lines
    #[arg(long, short = 'n', value_name = "COUNT")]
    lines: Option<usize>,
}

impl LogArgs {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Exit> {
        with_config(global, |config| {
            let name = &find_server(&config.gateway, &self.server)?.spec.name;
            let newest = fleet::log_path(&gateway::logs(&config.gateway.state_dir), name);
            let shown = read_last_lines(&newest, self.lines);
            let json = json!({"server": name, "lines": shown});
            print_lines(&shown, global.json.then_some(&json))
                .ok_or_else(|| Exit::Nothing.with(format!("`{name}` wrote nothing to stderr")))
        })
    }
}

/// Prints the lines, or this JSON of them. `None` if there is no line.
pub(super) fn print_lines(lines: &[String], json: Option<&Value>) -> Option<Exit> {
    match json {
        Some(json) => report::print_json(json),
        None if lines.is_empty() => {}
        None => report::print_data(&lines.join("\n")),
    }
    (!lines.is_empty()).then_some(Exit::Success)
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
