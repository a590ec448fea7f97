//! The machine: its clock, its programs, the state folder, the daemon.

use files::clock::now_s;
use std::{collections::BTreeMap, path::Path, process::Stdio, time::Duration};

use daemon::{identity::Build, reach::Route, running::SilentDaemon, socket::connect};
use fleet::{ClusterState, NodeState};
use gateway::Settings;
use processes::Guarantee;
use setup::doctor::{Check, programs};
use tokio::{process::Command, time::timeout};

use super::traces;
use crate::{
    cli::global::Global,
    commands::{
        route::{find_route, read_status},
        status::render_cluster,
    },
};

/// The timeout of a program that prints its version; `docker info` asks its daemon.
const ANSWER_WAIT: Duration = Duration::from_secs(10);

/// Snapshots, index, logs and kept results need some space, and downloads of servers much more.
const DISK_NEEDED_MIB: u64 = 100;
const DISK_SCARCE_MIB: u64 = 1024;

/// A clock before the day on which recipes were last checked is wrong: certificates are then rejected.
pub(super) fn check_clock() -> Check {
    let known = recipes::all().iter().map(|recipe| recipe.checked.as_str());
    let known = known.max().unwrap_or_default();
    let days = now_s() / 86_400;
    let earliest = days_of(known).unwrap_or(0);
    if days + 1 < earliest {
        let found = format!("is before {known}, so certificates are rejected");
        return Check::problem("clock", found).then("set the clock: `timedatectl set-ntp true`");
    }
    Check::fine("clock", format!("after {known}"))
}

/// Returns the guarantees of this system, those that do not hold in a warning of their own.
pub(super) fn describe_system() -> Vec<Check> {
    let (system, guarantees) = processes::GUARANTEES;
    let tell = |it: &Guarantee| format!("{} ({})", it.name, it.how);
    let (held, others): (Vec<_>, Vec<_>) = guarantees.iter().partition(|it| it.holds);
    let held: Vec<String> = held.into_iter().map(tell).collect();
    let fine = Check::fine("system", format!("{system}: {}", held.join("; ")));
    let others = others.into_iter().map(|it| {
        let found = format!("{system}: {}, {}", it.name, it.how);
        Check::warning("system", found).then("docs/platforms.md compares the systems")
    });
    others.chain([fine]).collect()
}

/// Checks that servers can be confined. It is a problem only if a server needs a sandbox.
pub(super) fn check_sandbox(settings: &Settings) -> Check {
    let wanting = |spec: &fleet::ServerSpec| spec.sandbox.is_some() && spec.image.is_none();
    let wanting = settings.enabled().find(|it| wanting(&it.spec));
    match (processes::sandbox::check(), wanting) {
        (Ok(()), _) => Check::fine("sandbox", "servers can be confined"),
        (Err(error), None) => Check::fine("sandbox", format!("{error}; no server needs it")),
        (Err(error), Some(server)) => {
            let name = &server.spec.name;
            let found = format!("{error}, so server {name} does not start");
            Check::problem("sandbox", found).then(format!(
                "set an `image` for {name}, or remove its `sandbox`"
            ))
        }
    }
}

/// Returns the days since 1970 of a date such as `2026-11-22`, by years and months of mean length.
fn days_of(date: &str) -> Option<u64> {
    let mut parts = date.split('-').map(|part| part.parse::<u64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let days = year.checked_sub(1970)? * 1461 / 4 + (month - 1) * 304 / 10 + day;
    Some(days.saturating_sub(2))
}

/// Asks the programs that servers are started by for their versions.
pub(super) async fn ask_programs(
    settings: &Settings,
) -> (Vec<Check>, BTreeMap<&'static str, String>) {
    let mut checks = Vec::new();
    let mut versions = BTreeMap::new();
    for program in programs(settings) {
        let (args, called): (&[&str], &str) = match program {
            "docker" => (&["info", "--format", "{{.ServerVersion}}"], "Docker"),
            "node" => (&["--version"], "Node.js"),
            "uv" => (&["--version"], "uv"),
            _ => (&["--version"], "Python"),
        };
        let about = format!("program {program}");
        checks.push(match ask(program, args).await {
            Ok(version) => {
                let check = Check::fine(about, format!("{called} {version}"));
                versions.insert(program, version);
                check
            }
            Err(NoVersion::Missing(failure)) => {
                let next = failure.hint.clone().unwrap_or_default();
                Check::problem(about, failure.to_string()).then(next)
            }
            Err(NoVersion::Said(why)) if program == "docker" => {
                Check::problem(about, why).then("start Docker, until `docker info` answers")
            }
            Err(NoVersion::Said(why)) => Check::problem(about, why).then(format!(
                "reinstall {called}: `{program} {}` fails",
                args.join(" ")
            )),
        });
    }
    // `uvx` runs servers with the Python it finds.
    if versions.contains_key("uv")
        && let Ok(version) = ask("python3", &["--version"]).await
    {
        versions.insert("python3", version);
    }
    (checks, versions)
}

/// The reason why a program does not print its version.
enum NoVersion {
    Missing(fleet::Failure),
    Said(String),
}

/// Returns the version that a program prints, if it is on a path where a server would find it too.
async fn ask(program: &str, args: &[&str]) -> Result<String, NoVersion> {
    let file = fleet::find_by_word(program).map_err(NoVersion::Missing)?;
    let mut command = Command::new(file);
    command.args(args).stdin(Stdio::null()).kill_on_drop(true);
    let output = timeout(ANSWER_WAIT, command.output()).await;
    let output = output.map_err(|_| NoVersion::Said(format!("`{program}` does not answer")))?;
    let output = output
        .map_err(|error| NoVersion::Said(format!("`{program}` cannot be started: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let word = text.split_whitespace().find(|word| {
        let word = word.trim_start_matches('v');
        word.starts_with(|c: char| c.is_ascii_digit())
    });
    match word {
        Some(word) if output.status.success() => Ok(word.trim_start_matches('v').to_owned()),
        _ => {
            let told = String::from_utf8_lossy(&output.stderr);
            let told = told.lines().map(str::trim).rfind(|line| !line.is_empty());
            let told = told.unwrap_or("it prints no version");
            Err(NoVersion::Said(printable::one_line(told)))
        }
    }
}

/// Checks that the state folder can be written to and has space.
pub(super) fn check_state(folder: &Path) -> Vec<Check> {
    let shown = folder.display();
    let about = "state folder";
    if let Err(error) = files::own_folder(folder) {
        let next = format!("ls -ld {shown}; it must be yours alone: chmod 700 {shown}");
        return vec![Check::problem(about, format!("{shown}: {error}")).then(next)];
    }
    if let Err(error) = tempfile::NamedTempFile::new_in(folder) {
        let next = format!("make {shown} writable, or set `state_dir` to another folder");
        return vec![Check::problem(about, format!("{shown}: {error}")).then(next)];
    }
    let free = files::free_bytes(folder).map_or(u64::MAX, |bytes| bytes >> 20);
    let found = format!("{shown}: {free} MiB are free");
    vec![match free {
        0..DISK_NEEDED_MIB => Check::problem(about, found).then("free disk space: `df -h`"),
        DISK_NEEDED_MIB..DISK_SCARCE_MIB => {
            Check::warning(about, found).then("free disk space: `df -h`")
        }
        u64::MAX => Check::fine(about, format!("{shown} can be written to")),
        _ => Check::fine(about, found),
    }]
}

/// Reports whether this node takes part in its cluster.
fn check_cluster(state: &ClusterState) -> Check {
    let found = render_cluster(state);
    let next = "proxy cluster status";
    if state.link != "connected" || state.trouble.is_some() {
        return Check::problem("cluster", found).then(next);
    }
    if let Some(stranger) = state.strangers.first() {
        let found = format!("{found}; node {stranger} has another key and is ignored");
        return Check::warning("cluster", found).then(next);
    }
    let absent = state.nodes.iter().find(|it| !it.is_connected);
    let Some(NodeState { node, silent_s, .. }) = absent else {
        return Check::fine("cluster", found);
    };
    let found = format!("{found}; node {node} is silent for {silent_s} s");
    Check::warning("cluster", found).then(next)
}

/// Checks the daemon of this configuration: whether it is of this build, and what dead ones left.
pub(super) async fn check_daemons(global: &Global) -> Vec<Check> {
    let route = match find_route(global) {
        Ok(Ok(route)) => route,
        Ok(Err(error)) => {
            let next = "set XDG_RUNTIME_DIR to a folder of yours alone";
            return vec![Check::problem("daemon", error.to_string()).then(next)];
        }
        Err(_) => return Vec::new(),
    };
    let mut checks = find_stale_sockets(&route);
    let answers = read_status(&route).await;
    let is_none = answers.is_empty();
    for answer in answers {
        let daemon = match answer {
            Ok(daemon) => daemon,
            Err(error) => {
                let silent = error.get_ref().and_then(|it| it.downcast_ref());
                let next =
                    silent.map_or_else(|| "proxy daemon restart".to_owned(), SilentDaemon::next);
                checks.push(Check::unknown("daemon", error.to_string()).then(next));
                continue;
            }
        };
        let (version, pid) = (&daemon.version, daemon.pid);
        let difference = match &daemon.build {
            Some(build) => build.describe_difference(&Build::ours()),
            // Daemons of earlier versions do not say it.
            None => Some("an older build than this program".to_owned()),
        };
        checks.push(match difference {
            None => Check::fine("daemon", format!("{version} runs, pid {pid}")),
            Some(difference) => {
                let found = format!("{version} runs, pid {pid}: {difference}");
                Check::warning("daemon", found).then("proxy daemon restart")
            }
        });
        checks.extend(daemon.traces.as_ref().map(traces::check_delivery));
        checks.extend(daemon.cluster.as_ref().map(check_cluster));
        if let Some(mistakes) = &daemon.config_mistakes {
            let found = format!(
                "uses the previous configuration, because the file has mistakes:\n{mistakes}"
            );
            checks.push(Check::problem("daemon", found).then("proxy config check"));
        }
    }
    if is_none {
        let found = "not running; the first client starts it";
        checks.push(Check::fine("daemon", found));
    }
    checks
}

fn find_stale_sockets(route: &Route) -> Vec<Check> {
    let stale = route.place.sockets().into_iter().filter_map(|socket| {
        let is_stale = matches!(connect(&socket), Ok(None)) && socket.exists();
        is_stale.then(|| {
            let found = format!("{} is left over from a daemon that ended", socket.display());
            Check::warning("daemon", found).then(format!("rm {}", socket.display()))
        })
    });
    stale.collect()
}

#[cfg(test)]
mod tests {
    use super::{check_state, days_of};
    use setup::doctor::CheckVerdict;

    #[test]
    fn days_are_counted_to_within_a_few() {
        let near = |date: &str, days: u64| days_of(date).unwrap().abs_diff(days) <= 3;
        assert!(near("2026-11-22", 20_779));
        assert!(near("2000-01-01", 10_957));
        assert_eq!(days_of("soon"), None);
    }

    #[test]
    fn a_state_folder_is_fine_or_says_what_is_wrong_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let verdict = check_state(&folder.path().join("state"))[0].verdict;
        assert!(verdict != CheckVerdict::Problem);
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert_eq!(check_state(&file)[0].verdict, CheckVerdict::Problem);
    }
}
