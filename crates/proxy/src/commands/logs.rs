//! `proxy logs`: the stderr of a server, or the log of the daemon.

use std::path::{Path, PathBuf};

use clap::Args;
use clap_complete::ArgValueCompleter;
use config::ConfigError;
use serde_json::{Value, json};

use super::{
    login::find_server,
    route::{find_route, read_status},
    with_config,
};
use crate::{
    cli::{complete::complete_servers, global::Global},
    event_loop::runtime,
    exit::Exit,
    report,
};

/// Print a server's stderr, or the log of the daemon
#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// Server of the configuration [default: the daemon]
    #[arg(value_name = "SERVER", add = ArgValueCompleter::new(complete_servers))]
    server: Option<String>,
    /// Print only the last lines
    #[arg(long, short = 'n', value_name = "COUNT")]
    lines: Option<usize>,
}

impl LogsArgs {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Exit> {
        let Some(server) = &self.server else {
            let newest = find_log(global).map_err(|error| Exit::Usage.with(error.to_string()))?;
            let lines = read_last_lines(&newest, self.lines);
            let json = json!({"file": newest, "lines": lines});
            return print_lines(global, &lines, &json, "the daemon has written no log");
        };
        with_config(global, |config| {
            let name = &find_server(&config.gateway, server)?.spec.name;
            let newest = fleet::log_path(&gateway::logs(&config.gateway.state_dir), name);
            let lines = read_last_lines(&newest, self.lines);
            let json = json!({"server": name, "lines": lines});
            let nothing = format!("`{name}` wrote nothing to stderr");
            print_lines(global, &lines, &json, &nothing)
        })
    }
}

/// Finds the log of a running daemon even if the configuration is broken by now.
fn find_log(global: &Global) -> Result<PathBuf, ConfigError> {
    let of_running = find_route(global)?.ok().and_then(|route| {
        let daemons = runtime().ok()?.block_on(read_status(&route));
        Some(daemons.into_iter().find_map(Result::ok)?.log)
    });
    of_running.map_or_else(
        || {
            let config = global.load()?;
            Ok(daemon::log::path(&config.gateway.state_dir))
        },
        Ok,
    )
}

/// Prints the lines, or the JSON of them. Without a line the command ends with this text.
fn print_lines(
    global: &Global,
    lines: &[String],
    json: &Value,
    nothing: &str,
) -> anyhow::Result<Exit> {
    if global.json {
        report::print_json(json);
    } else if !lines.is_empty() {
        report::print_data(&lines.join("\n"));
    }
    if lines.is_empty() {
        return Err(Exit::Nothing.with(nothing));
    }
    Ok(Exit::Success)
}

/// Returns the last lines of a log, including the rotated file.
fn read_last_lines(newest: &Path, lines: Option<usize>) -> Vec<String> {
    let older = newest.with_extension("log.1");
    let texts = [&older, newest].map(|path| std::fs::read_to_string(path).unwrap_or_default());
    let text = texts.concat();
    let all: Vec<&str> = text.lines().collect();
    let shown = &all[all.len().saturating_sub(lines.unwrap_or(usize::MAX))..];
    shown.iter().map(ToString::to_string).collect()
}
