//! Code shared by `init` and `add`: the paths of files, the table of servers found, and the request
//! for their tools.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use config::Environment;
use printable::{mask_arguments, mask_secrets, shorten};
use serde_json::{Value, json};
use setup::moving::{Home, LeftOut, Own, PACKAGE, Received, ServerEntry};
use tool::ServerName;

use super::reindex;
use crate::{
    cli::global::Global,
    event_loop::run_async,
    exit::Exit,
    logging::start_log,
    report::{self, Reindexed},
    table::render_table,
};

/// The width of a start line in a table, in characters.
const START_CHARS_MAX: usize = 60;

/// Returns the home folder of this process, and the project that contains the working folder.
pub(super) fn find_home(env: &Environment) -> anyhow::Result<Home> {
    let folder = env
        .path("HOME")
        .context("`HOME` is not set, so no client can be found")?;
    let text = |(name, value): (&str, &std::ffi::OsStr)| {
        Some((name.to_owned(), value.to_str()?.to_owned()))
    };
    let home = Home::new(folder, env.all().filter_map(text));
    Ok(match std::env::current_dir() {
        Ok(project) if project != home.folder() => home.with_project(project),
        _ => home,
    })
}

/// Returns the entry for this program in clients' files: its path, chosen so that it survives an
/// upgrade, or the command that runs its package; and the path of the configuration if it is not the
/// default.
pub(super) fn find_own(global: &Global, env: &Environment) -> anyhow::Result<Own> {
    let program = std::env::current_exe().context("our own program cannot be found")?;
    let name = program.file_name().unwrap_or_default();
    let folders = env.path("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&folders)
        .map(|folder| folder.join(name))
        .find(|path| path.is_absolute() && path.canonicalize().is_ok_and(|it| it == program));
    let file = config::file_path(&global.overrides(), env)?;
    let runner = find_runner(&program);
    let words = runner.map_or(&[][..], |(_, words)| words).iter();
    let mut args: Vec<String> = words.map(ToString::to_string).collect();
    if config::default_path(env).as_ref() != Some(&file) {
        args.extend(["--config".to_owned(), file.to_string_lossy().into_owned()]);
    }
    if let Some(folder) = config::named_state_dir(&global.overrides(), env) {
        args.extend([
            "--state-dir".to_owned(),
            folder.to_string_lossy().into_owned(),
        ]);
    }
    args.push("serve".to_owned());
    let config = config::load(&global.overrides(), env);
    let listen = config.ok().and_then(|config| config.http.listen);
    let urls = listen.map(|listen| format!("http://{listen}/mcp"));
    let runner = runner.map(|(command, _)| PathBuf::from(command));
    Ok(Own {
        program: runner.or(on_path).unwrap_or(program),
        args,
        urls: urls.into_iter().collect(),
    })
}

/// Returns the command that runs our package, and its first arguments, if the program is in the cache of
/// that command: npm removes such a folder, and each version of uv's has another name.
fn find_runner(program: &Path) -> Option<(&'static str, &'static [&'static str])> {
    let parts: Vec<_> = program.iter().map(|part| part.to_string_lossy()).collect();
    if parts.iter().any(|part| part == "_npx") {
        return Some(("npx", &["-y", PACKAGE]));
    }
    let is_of_uv = parts.iter().any(|part| part.starts_with("archive-v"));
    is_of_uv.then_some(("uvx", &[PACKAGE]))
}

/// Returns a remark if a program is in a temporary folder.
pub(super) fn doubt_program(program: &Path) -> Option<String> {
    let parts: Vec<_> = program.iter().map(|part| part.to_string_lossy()).collect();
    let passing = [
        "target", ".nvm", ".fnm", ".asdf", ".volta", "mise", "dlx", "tmp",
    ];
    let part = parts.iter().find(|part| passing.contains(&part.as_ref()))?;
    Some(format!(
        "warning: clients will start {}, in the temporary folder `{part}`: they fail once that folder is \
         removed. Install the program and run this again",
        program.display()
    ))
}

pub(super) fn render_servers(received: &[Received]) -> String {
    let row = |it: &Received| {
        let origins: Vec<String> = it.taken.entries.iter().map(ServerEntry::origin).collect();
        let state = match (it.was_there, it.taken.server.enabled) {
            (true, _) => "exists",
            (false, true) => "",
            (false, false) => "off",
        };
        [
            it.name.to_string(),
            unique(origins).join(", "),
            state.to_owned(),
            render_start(it),
        ]
    };
    render_table(
        ["server", "from", "", "start"],
        received.iter().map(row).collect(),
    )
}

fn unique(mut texts: Vec<String>) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    texts.retain(|text| seen.insert(text.clone()));
    texts
}

/// Renders the command or address of a server, with everything that looks secret masked.
fn render_start(received: &Received) -> String {
    let server = &received.taken.server;
    let line = match (&server.url, &server.command) {
        (Some(url), _) => mask_secrets(url, None),
        (None, Some(command)) => {
            let words = std::iter::once(command).chain(&server.args);
            mask_arguments(words.map(String::as_str)).join(" ")
        }
        (None, None) => String::new(),
    };
    shorten(&line, START_CHARS_MAX).into_owned()
}

/// Lists remarks about each server, and about those that were left out, one per line.
pub(super) fn list_remarks(received: &[Received], left: &[LeftOut]) -> Vec<String> {
    let mut lines = Vec::new();
    for Received {
        name,
        taken,
        was_there,
        folder_remark,
    } in received
    {
        let remark = folder_remark.iter();
        lines.extend(remark.map(|remark| format!("{name}: {remark}")));
        if *was_there {
            continue;
        }
        let remarks = taken.remarks.iter();
        lines.extend(remarks.map(|remark| format!("{name}: {remark}")));
        for need in &taken.needs {
            lines.push(format!(
                "{name}: set the variable {} ({})",
                need.variable, need.what
            ));
        }
    }
    let left = left.iter().map(|it| {
        format!(
            "not imported: {} of {}: {}",
            it.entry.name,
            it.entry.origin(),
            it.why
        )
    });
    lines.extend(left);
    lines
}

/// Returns each server and what was left out, as JSON.
pub(super) fn to_json(received: &[Received], left: &[LeftOut]) -> (Value, Value) {
    let server = |it: &Received| {
        let from: Vec<String> = it.taken.entries.iter().map(ServerEntry::origin).collect();
        let needs = it.taken.needs.iter().map(|need| &need.variable);
        json!({
            "name": it.name,
            "from": from,
            "was_there": it.was_there,
            "enabled": it.taken.server.enabled,
            "remarks": it.taken.remarks.iter().chain(&it.folder_remark).collect::<Vec<_>>(),
            "needs": needs.collect::<Vec<_>>(),
        })
    };
    let left_one =
        |it: &LeftOut| json!({"name": it.entry.name, "from": it.entry.origin(), "why": it.why});
    (
        received.iter().map(server).collect(),
        left.iter().map(left_one).collect(),
    )
}

/// The answers of the servers that were asked.
#[derive(Debug, Default)]
pub(super) struct SurveyOutcome {
    pub(super) lines: Vec<Reindexed>,
    pub(super) seconds: f64,
}

impl SurveyOutcome {
    /// Prints one line for each server; nothing if no server was asked.
    pub(super) fn print(&self) -> Exit {
        if self.lines.is_empty() {
            return Exit::Success;
        }
        report::print_reindex(&self.lines, self.seconds, false)
    }
}

pub(super) fn ask_servers(
    global: &Global,
    names: Vec<ServerName>,
) -> anyhow::Result<SurveyOutcome> {
    if names.is_empty() {
        return Ok(SurveyOutcome::default());
    }
    start_log("error");
    let began = std::time::Instant::now();
    let lines =
        run_async(async { reindex::survey_alone(global.load()?.gateway, names, global).await })??;
    Ok(SurveyOutcome {
        lines,
        seconds: began.elapsed().as_secs_f64(),
    })
}

/// Returns the names of those that are enabled and for which `fits` returns true.
pub(super) fn names_of(received: &[Received], fits: impl Fn(&Received) -> bool) -> Vec<ServerName> {
    let enabled = received.iter().filter(|it| it.taken.server.enabled);
    let fitting = enabled.filter(|it| fits(it));
    fitting.map(|it| it.name.clone()).collect()
}

pub(super) fn journal_folder(global: &Global, env: &Environment) -> anyhow::Result<PathBuf> {
    let overrides = global.overrides();
    let config =
        config::load(&overrides, env).or_else(|_| config::load_without_file(&overrides, env))?;
    Ok(config.gateway.state_dir.join("init"))
}

pub(super) fn say_all(lines: &[String]) {
    for line in lines {
        report::say(line);
    }
}

#[cfg(test)]
mod tests {
    use super::find_runner;

    #[track_caller]
    fn check(program: &str, expected: Option<&str>) {
        let found = find_runner(program.as_ref());
        let line = found.map(|(command, words)| format!("{command} {}", words.join(" ")));
        assert_eq!(line.as_deref(), expected, "{program}");
    }

    #[test]
    fn a_program_in_the_cache_of_a_runner_is_run_by_that_runner() {
        let of_npx =
            "/home/ada/.npm/_npx/5a9d879542beca3a/node_modules/tool-proxy-linux-x64/bin/tool-proxy";
        check(of_npx, Some("npx -y tool-proxy"));
        let of_uvx = "/home/ada/.cache/uv/archive-v0/vDHtq2QHO5zTLrLBOfpvB/bin/tool-proxy";
        check(of_uvx, Some("uvx tool-proxy"));
        for installed in [
            "/home/ada/.local/share/uv/tools/tool-proxy/bin/tool-proxy",
            "/usr/lib/node_modules/tool-proxy/node_modules/tool-proxy-linux-x64/bin/tool-proxy",
            "/home/ada/.cargo/bin/proxy",
        ] {
            check(installed, None);
        }
    }
}
