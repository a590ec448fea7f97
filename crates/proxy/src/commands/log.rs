//! `proxy log`: the stderr of a server.

use std::path::Path;

use clap::Args;
use clap_complete::ArgValueCompleter;
use config::Config;
use serde_json::json;

use super::with_config;
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
            Ok(print_log(&config, global, &self.server, self.lines))
        })
    }
}

fn print_log(config: &Config, global: &Global, server: &str, lines: Option<usize>) -> Exit {
    let Some(known) = config
        .gateway
        .servers
        .iter()
        .find(|it| it.spec.name.as_str() == server)
    else {
        let names = config.gateway.servers.iter();
        let names: Vec<&str> = names.map(|server| server.spec.name.as_str()).collect();
        report::say(&format!(
            "error: no server `{server}`\nhint: the servers are {}",
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
        report::say(&format!("`{server}` wrote nothing to stderr"));
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
