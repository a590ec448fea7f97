//! `proxy doctor`: checks of this machine and this configuration, each with the command that fixes the
//! problem.

mod clients;
mod machine;
mod scripts;
mod servers;
mod traces;

use clap::Args;
use config::Config;
use serde_json::{Value, json};
use setup::doctor::{
    Check, CheckVerdict, advise, check_addresses, check_arguments, check_commands,
    check_kept_secrets, check_runtimes, check_secrets, check_twins, check_variables,
};

use super::idle_rules;
use crate::{
    cli::global::Global, event_loop::run_async, exit::Exit, logging::start_log, report, table::wrap,
};

/// Find problems of machine and configuration, with fixes
///
/// Checks programs, variables, rules without effect, secrets in plain text, clients, the daemon and
/// the state folder, and starts every server once. It changes nothing, and prints no values.
///
/// Exit codes: 0 no problem, 1 a problem, 2 a check could not be made.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Start no server, and no program to read its version
    #[arg(long)]
    offline: bool,
}

impl DoctorArgs {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Exit> {
        start_log("error");
        let mut checks = vec![machine::check_clock()];
        match global.load() {
            Ok(config) => {
                checks.push(describe_configuration(&config));
                checks.extend(run_async(examine_servers(global, config, self.offline))??);
            }
            Err(error) => {
                let next = "correct the file, then run `proxy config check`; `proxy add NAME` creates a file";
                checks.push(Check::problem("configuration", error.to_string()).then(next));
            }
        }
        checks.sort_by_key(|check| check.verdict);
        if global.json {
            report::print_json(&to_json(&checks));
        } else {
            report::print_data(&render(&checks));
        }
        Ok(exit_of(&checks))
    }
}

fn describe_configuration(config: &Config) -> Check {
    let enabled = config.gateway.enabled().count();
    let all = config.gateway.servers.len();
    let file = config.file.display();
    match config.notes().first() {
        Some(note) if all == 0 => Check::warning("configuration", format!("{file}: {note}"))
            .then("proxy add --list, then `proxy add NAME`"),
        Some(note) => Check::warning("configuration", note)
            .then("correct the file; `proxy config check` prints all notes"),
        None => Check::fine(
            "configuration",
            format!("{file}: {all} servers, {enabled} enabled"),
        ),
    }
}

async fn examine_servers(
    global: &Global,
    config: Config,
    offline: bool,
) -> anyhow::Result<Vec<Check>> {
    let settings = &config.gateway;
    let variable = |name: &str| std::env::var(name).ok();
    let mut checks = check_variables(settings, variable);
    checks.extend(check_commands(settings, variable, |spec| {
        fleet::find_command(spec).map(drop)
    }));
    checks.extend(check_twins(settings));
    checks.extend(check_addresses(settings));
    checks.extend(check_arguments(settings));
    checks.extend(check_secrets(settings));
    checks.extend(check_kept_secrets(settings));
    checks.extend(scripts::check(settings));
    checks.extend(traces::check_configured(settings));
    if !offline {
        let (programs, versions) = machine::ask_programs(settings).await;
        checks.extend(check_runtimes(settings, &versions));
        // A server may have reported the same program missing.
        let is_new = |check: &Check| checks.iter().all(|told| told.next != check.next);
        let programs = programs.into_iter();
        let new = programs.filter(|check| check.next.is_none() || is_new(check));
        checks.extend(new.collect::<Vec<_>>());
    }
    checks.extend(clients::check(settings));
    checks.extend(machine::describe_system());
    checks.push(machine::check_sandbox(settings));
    checks.extend(machine::check_state(&settings.state_dir));
    checks.extend(machine::check_daemons(global).await);
    let settings = config.gateway.clone();
    checks.extend(servers::check(config.gateway, &checks, offline).await?);
    checks.extend(idle_rules::check(&settings));
    advise(&settings, &mut checks, !offline);
    Ok(checks)
}

/// Renders problems first, each with the fix; then one line for everything that is fine.
fn render(checks: &[Check]) -> String {
    let width = |check: &Check| check.about.chars().count();
    let widest = checks.iter().map(width).max().unwrap_or(0);
    let mut lines = Vec::new();
    for check in checks {
        let sign = match check.verdict {
            CheckVerdict::Fine => '✓',
            CheckVerdict::Warning | CheckVerdict::Unknown => '!',
            CheckVerdict::Problem => '✗',
        };
        let mut found = check.found.lines();
        let first = found.next().unwrap_or_default();
        let hang = widest + 4;
        lines.push(wrap(
            &format!("{sign} {:widest$}  {first}", check.about),
            hang,
        ));
        let next = check.next.iter().map(|next| format!("-> {next}"));
        for line in found.map(str::to_owned).chain(next) {
            lines.push(wrap(&format!("{:hang$}{line}", ""), "-> ".len()));
        }
    }
    lines.push(String::new());
    lines.push(summarise(checks));
    lines.join("\n")
}

fn summarise(checks: &[Check]) -> String {
    let count = |verdict| checks.iter().filter(|it| it.verdict == verdict).count();
    let kinds = [
        (CheckVerdict::Problem, "problem", "problems"),
        (CheckVerdict::Unknown, "check failed", "checks failed"),
        (CheckVerdict::Warning, "warning", "warnings"),
    ];
    let parts = kinds.map(|(verdict, one, many)| match count(verdict) {
        0 => None,
        1 => Some(format!("1 {one}")),
        count => Some(format!("{count} {many}")),
    });
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    match parts.as_slice() {
        [] => format!("no problems ({} checks)", checks.len()),
        parts => parts.join(", "),
    }
}

fn to_json(checks: &[Check]) -> Value {
    let check = |check: &Check| {
        json!({
            "about": check.about,
            "verdict": match check.verdict {
                CheckVerdict::Problem => "problem",
                CheckVerdict::Unknown => "unknown",
                CheckVerdict::Warning => "warning",
                CheckVerdict::Fine => "fine",
            },
            "found": check.found,
            "next": check.next,
        })
    };
    let checks: Vec<Value> = checks.iter().map(check).collect();
    json!({ "checks": checks })
}

/// 0: nothing, or warnings alone; 1: a problem; 2: a check could not be made.
fn exit_of(checks: &[Check]) -> Exit {
    match checks.iter().map(|check| check.verdict).min() {
        Some(CheckVerdict::Problem) => Exit::Nothing,
        Some(CheckVerdict::Unknown) => Exit::Usage,
        _ => Exit::Success,
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    #[test]
    fn problems_come_first_with_what_to_do() {
        let mut checks = vec![
            Check::fine("program npx", "Node.js 20.20.2"),
            Check::warning(
                "server two",
                "has the same command or address as server one",
            )
            .then("proxy remove two"),
            Check::problem("server one", "first\nsecond").then("do it"),
        ];
        checks.sort_by_key(|check| check.verdict);
        assert_snapshot!(render(&checks), @"
        ✗ server one   first
                       second
                       -> do it
        ! server two   has the same command or address as server one
                       -> proxy remove two
        ✓ program npx  Node.js 20.20.2

        1 problem, 1 warning
        ");
        assert_eq!(exit_of(&checks), Exit::Nothing);
        assert_eq!(exit_of(&checks[1..]), Exit::Success);
        assert_eq!(exit_of(&[Check::unknown("x", "y")]), Exit::Usage);
        assert_snapshot!(render(&checks[2..]), @"
        ✓ program npx  Node.js 20.20.2

        no problems (1 checks)
        ");
    }
}
