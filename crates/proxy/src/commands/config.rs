//! `proxy config`: checks the configuration, and prints its values, its path or the reference of its keys.

use anyhow::bail;
use clap::Subcommand;
use config::{Config, EffectiveValue, Environment, SCHEMA};
use serde_json::json;
use setup::doctor::{Check, CheckVerdict};

use super::{idle_rules, with_config};
use crate::{
    cli::global::Global,
    exit::{Exit, refuse},
    report,
    table::wrap,
};

const SHOW: &str = "\
Examples:
  proxy config show --origin
  proxy config show servers.github
  PROXY_LOG=debug proxy config show log --origin";

/// Check the configuration; print values, path or reference
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigAction {
    /// Check the configuration, and print every mistake
    Check,
    /// Print the values in effect, the defaults included; secrets are masked
    #[command(after_help = SHOW)]
    Show {
        /// Only this key, or the keys of this table [default: all]
        key: Option<String>,
        /// Print the origin of each value: a line of the file, a variable, a flag, or the default
        #[arg(long)]
        origin: bool,
    },
    /// Print the path of the configuration file
    Path,
    /// Print the reference of all keys; with `--json`, the JSON Schema
    Docs,
}

impl ConfigAction {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Exit> {
        match self {
            Self::Check => with_config(global, |config| Ok(print_check(&config, global.json))),
            Self::Show { key, origin } => show(global, key.as_deref(), origin),
            Self::Path => print_path(global),
            Self::Docs => {
                let reference = if global.json {
                    SCHEMA.to_owned()
                } else {
                    config::docs()
                };
                report::print_data(&reference);
                Ok(Exit::Success)
            }
        }
    }
}

fn show(global: &Global, key: Option<&str>, with_origin: bool) -> anyhow::Result<Exit> {
    let values = config::list_values(&global.overrides(), &Environment::of_process());
    let mut values = values.map_err(|error| Exit::Usage.with(error.to_string()))?;
    if let Some(key) = key {
        values.retain(|it| {
            let rest = it.key.strip_prefix(key);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        });
        if values.is_empty() {
            bail!("nothing sets `{key}`\nhint: `proxy config docs` lists the keys");
        }
    }
    if global.json {
        report::print_json(&serde_json::to_value(&values)?);
        return Ok(Exit::Success);
    }
    let line = |it: &EffectiveValue| {
        let origin = with_origin.then(|| format!(" # {}", it.origin));
        format!("{it}{}", origin.unwrap_or_default())
    };
    let lines: Vec<String> = values.iter().map(line).collect();
    report::print_data(&lines.join("\n"));
    Ok(Exit::Success)
}

fn print_path(global: &Global) -> anyhow::Result<Exit> {
    let asked = global.overrides().config;
    let of_variable = std::env::var_os("PROXY_CONFIG").filter(|path| !path.is_empty());
    let path = asked
        .or(of_variable.map(Into::into))
        .or_else(|| config::default_path(&Environment::of_process()))
        .ok_or_else(|| {
            refuse("no home folder is known\nhint: set HOME, or name a file with --config")
        })?;
    report::print_data(&path.display().to_string());
    Ok(Exit::Success)
}

/// Prints the remarks on a valid configuration. A rule that restricts access and matches nothing is a
/// problem: the exit code is 1.
fn print_check(config: &Config, as_json: bool) -> Exit {
    let (problems, remarks): (Vec<_>, Vec<_>) = idle_rules::check(&config.gateway)
        .into_iter()
        .partition(|check| check.verdict == CheckVerdict::Problem);
    let problems: Vec<String> = problems.iter().map(to_line).collect();
    let mut notes = config.notes();
    notes.extend(remarks.iter().map(to_line));
    let exit = Exit::of_hit(problems.is_empty());
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
