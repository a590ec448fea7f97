//! Everything a person reads on a terminal. Data goes to stdout, everything else to stderr.
//!
//! The only file that prints. `serve` uses `say` alone: there, stdout is the protocol.

use std::{
    borrow::Cow,
    io::{self, IsTerminal as _, Write as _},
    time::Duration,
};

use dialoguer::Password;
use gateway::survey::SurveyOutcome;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use printable::{count_of, group_digits};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::{
    exit::{Ended, Exit},
    table::wrap,
};

/// Prints data. A closed pipe (`| head`) is no error. On a terminal, control characters from servers
/// are made safe; elsewhere the bytes are unchanged.
pub(crate) fn print_data(text: &str) {
    let text = make_safe(text, io::stdout().is_terminal());
    let mut stdout = io::stdout().lock();
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let _ = write!(stdout, "{text}{end}").and_then(|()| stdout.flush());
}

/// Returns the text to print. All text for a terminal is made safe here.
fn make_safe(text: &str, is_terminal: bool) -> Cow<'_, str> {
    if is_terminal {
        printable::for_terminal(text)
    } else {
        Cow::Borrowed(text)
    }
}

pub(crate) fn clear_screen() {
    let mut stdout = io::stdout().lock();
    if stdout.is_terminal() {
        let _ = stdout.write_all(b"\x1b[H\x1b[J");
    }
}

/// Prints bytes unchanged; on a terminal, prints them as text that ends with a line end.
pub(crate) fn print_bytes(
    write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
) -> io::Result<()> {
    if io::stdout().is_terminal() {
        let mut bytes = Vec::new();
        write(&mut bytes)?;
        print_data(&String::from_utf8_lossy(&bytes));
        return Ok(());
    }
    let mut stdout = io::BufWriter::new(io::stdout().lock());
    let written = write(&mut stdout).and_then(|()| stdout.flush());
    match written {
        // A reader that closed the pipe has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

pub(crate) fn print_json(value: &Value) {
    print_data(&printable::seen_json(&format!("{value:#}")));
}

/// Writes a message to standard error. If that fails (a closed pipe, a full disk), the message is lost,
/// and the client's session goes on.
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{}", make_safe(text, true));
}

/// Returns true if a person can be asked: standard input and standard error are terminals.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks on the terminal and returns the answer in lower case.
pub(crate) fn ask(question: &str) -> String {
    let _ = write!(io::stderr(), "{} ", make_safe(question, true));
    let mut answer = String::new();
    let _ = io::stdin().read_line(&mut answer);
    answer.trim().to_lowercase()
}

/// Asks on the terminal a question that ends with `[y]es, [n]o:`, and returns true for yes.
pub(crate) fn confirm(question: &str) -> bool {
    ["y", "yes"].contains(&ask(question).as_str())
}

/// Asks on the terminal for a secret, without echo.
pub(crate) fn ask_secret(prompt: &str) -> io::Result<String> {
    let asked = Password::new().with_prompt(prompt).interact();
    asked.map_err(|dialoguer::Error::IO(error)| error)
}

/// Prints the error of a command, and returns its outcome.
pub(crate) fn fail(error: &anyhow::Error) -> Exit {
    let (exit, text) = explain(error);
    say(&text);
    exit
}

/// Returns the outcome of a command with this error, and the text that is printed.
pub(crate) fn explain(error: &anyhow::Error) -> (Exit, String) {
    match error.downcast_ref::<Ended>() {
        Some(ended) => (ended.exit, ended.to_string()),
        None => (Exit::Nothing, format!("error: {}", describe(error))),
    }
}

/// Renders an error with its causes. Many errors repeat their cause in their own text: it is printed
/// once.
pub(crate) fn describe(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

pub(crate) fn print_clap(error: &clap::Error) {
    // Help goes to stdout, an error to stderr; a closed stream is no error here.
    let _ = error.print();
}

/// A progress bar on a terminal, nothing elsewhere.
pub(crate) fn make_bar(length: usize, things: &str, is_quiet: bool) -> ProgressBar {
    let is_shown = !is_quiet && io::stderr().is_terminal() && std::env::var_os("CI").is_none();
    let target = if is_shown {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(u64::try_from(length).ok(), target);
    let style =
        ProgressStyle::with_template(&format!("{{bar:30}} {{pos}}/{{len}} {things}  {{msg}}"));
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// The outcome of a reindex for one server, or the total of all.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Reindexed {
    pub(crate) server: String,
    pub(crate) tools: usize,
    pub(crate) tokens: u64,
    pub(crate) added: usize,
    pub(crate) changed: usize,
    pub(crate) removed: usize,
    /// The tools that were added, changed or removed; empty for a new server.
    #[serde(skip)]
    pub(crate) names: Vec<String>,
    pub(crate) failure: Option<String>,
    pub(crate) dropped: Vec<String>,
    #[serde(serialize_with = "write_rounded")]
    pub(crate) seconds: f64,
}

impl Reindexed {
    pub(crate) fn new(planned: &registry::Planned, asked: Option<&SurveyOutcome>) -> Self {
        let plan = &planned.plan;
        Self {
            server: planned.server.to_string(),
            tools: plan.added.len() + plan.changed.len() + plan.same.len(),
            tokens: planned.tokens,
            added: plan.added.len(),
            changed: plan.changed.len(),
            removed: plan.removed.len(),
            names: names_of(plan),
            failure: planned.stale.as_ref().map(ToString::to_string),
            dropped: asked.map(|asked| asked.dropped.clone()).unwrap_or_default(),
            seconds: asked.map_or(0.0, |asked| asked.seconds),
        }
    }

    fn total(servers: &[Self], seconds: f64) -> Self {
        let mut total = Self {
            server: "total".to_owned(),
            seconds,
            ..Self::default()
        };
        for server in servers {
            total.tools += server.tools;
            total.tokens += server.tokens;
            total.added += server.added;
            total.changed += server.changed;
            total.removed += server.removed;
        }
        total
    }

    fn render_difference(&self) -> String {
        let counts = [
            (self.added, "added"),
            (self.changed, "changed"),
            (self.removed, "removed"),
        ];
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        let parts = counts.map(|(count, what)| format!("{} {what}", group_digits(*count)));
        let parts: Vec<String> = parts.collect();
        match parts.as_slice() {
            [] => "same".to_owned(),
            parts => parts.join(", "),
        }
    }
}

/// Prints one line per server and a total; the exit code says whether all, some or none succeeded.
pub(crate) fn print_reindex(servers: &[Reindexed], seconds: f64, as_json: bool) -> Exit {
    let total = Reindexed::total(servers, seconds);
    let failed = servers.iter().filter(|it| it.failure.is_some()).count();
    if as_json {
        print_json(&json!({
            "servers": servers,
            "tools": total.tools,
            "tokens": total.tokens,
            "failed": failed,
            "seconds": round_to_ms(seconds),
        }));
    } else {
        print_data(&render_reindex(servers, &total, failed));
    }
    Exit::of_failures(failed, servers.len())
}

fn render_reindex(servers: &[Reindexed], total: &Reindexed, failed: usize) -> String {
    let names = servers.iter().chain([total]).map(|it| it.server.len());
    let widest = names.max().unwrap_or(0);
    let lines = servers.iter().flat_map(|it| render_server(it, widest));
    let mut lines: Vec<String> = lines.collect();
    lines.push(render_line(total, widest));
    if failed > 0 {
        lines.push(format!("{failed} of {} servers failed", servers.len()));
    }
    lines.join("\n")
}

/// The number of names of each kind that are printed.
const NAMES_MAX: usize = 10;

/// Returns one line per kind of change. All tools of a new server are new, and none is named.
fn names_of(plan: &registry::Plan) -> Vec<String> {
    if plan.same.is_empty() && plan.changed.is_empty() && plan.removed.is_empty() {
        return Vec::new();
    }
    let lists = [
        ("added", &plan.added),
        ("changed", &plan.changed),
        ("removed", &plan.removed),
    ];
    let lists = lists.into_iter().filter(|(_, names)| !names.is_empty());
    let line = |(what, names): (&str, &Vec<String>)| {
        let more = match names.len().saturating_sub(NAMES_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let names = names[..names.len().min(NAMES_MAX)].join(", ");
        printable::one_line(&format!("{what}: {names}{more}"))
    };
    lists.map(line).collect()
}

fn render_server(server: &Reindexed, widest: usize) -> Vec<String> {
    let name = &server.server;
    let mut lines = match &server.failure {
        None => vec![render_line(server, widest)],
        Some(why) => {
            let kept = match server.tools {
                0 => "no snapshot yet".to_owned(),
                tools => format!("kept its last {}, stale", count_of(tools, "tool")),
            };
            vec![format!("{name:widest$}  failed ({kept}): {why}")]
        }
    };
    let dropped = |why: &String| {
        let why = printable::one_line(why);
        format!("{:widest$}  left out: {why}", "")
    };
    lines.extend(server.dropped.iter().map(dropped));
    let changed = |names: &String| format!("{:widest$}  {names}", "");
    lines.extend(server.names.iter().map(changed));
    // The rest of a line begins below its text; the lines behind the first are indented already.
    let hang = |line: &String| if line.starts_with(' ') { 2 } else { widest + 2 };
    lines.iter().map(|line| wrap(line, hang(line))).collect()
}

fn render_line(server: &Reindexed, widest: usize) -> String {
    format!(
        "{:widest$}  {:>5} {:5}  {:>9} tokens  {:<24}  {:.1} s",
        server.server,
        group_digits(server.tools),
        if server.tools == 1 { "tool" } else { "tools" },
        group_digits(usize::try_from(server.tokens).unwrap_or(usize::MAX)),
        server.render_difference(),
        server.seconds,
    )
}

fn round_to_ms(seconds: f64) -> f64 {
    (seconds * 1_000.0).round() / 1_000.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn write_rounded<S: Serializer>(seconds: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(round_to_ms(*seconds))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::{Reindexed, describe, make_safe, render_reindex};

    fn server(name: &str) -> Reindexed {
        Reindexed {
            server: name.to_owned(),
            tools: 0,
            tokens: 0,
            added: 0,
            changed: 0,
            removed: 0,
            names: Vec::new(),
            failure: None,
            dropped: Vec::new(),
            seconds: 0.25,
        }
    }

    #[test]
    fn a_cause_that_an_error_repeats_is_said_once() {
        let denied = || std::io::Error::other("permission denied");
        let kept = anyhow::Error::from(secrets::StoreError::File(denied()));
        assert_eq!(describe(&kept), "secrets: permission denied");
        let untold = anyhow::Error::from(denied()).context("cannot listen");
        assert_eq!(describe(&untold), "cannot listen: permission denied");
    }

    #[test]
    fn a_terminal_is_kept_from_what_it_is_shown() {
        let text = "\u{1b}[2Jgone\u{202e}\n\tfine\u{e0041}";
        assert_eq!(
            make_safe(text, true),
            "\\u{1b}[2Jgone\\u{202e}\n\tfine\\u{e0041}"
        );
        assert_eq!(make_safe(text, false), text);
    }

    #[test]
    fn a_reindex_reads_as_a_table() {
        let servers = [
            Reindexed {
                tools: 35,
                tokens: 12_345,
                added: 34,
                changed: 1,
                ..server("github")
            },
            Reindexed {
                tools: 9,
                tokens: 800,
                dropped: vec!["a tool\nwithout a name".to_owned()],
                ..server("memory")
            },
            Reindexed {
                tools: 3,
                failure: Some("it exited with code 1".to_owned()),
                ..server("db")
            },
        ];
        let total = Reindexed::total(&servers, 2.0);
        assert_snapshot!(render_reindex(&servers, &total, 1), @"
        github     35 tools     12,345 tokens  34 added, 1 changed       0.2 s
        memory      9 tools        800 tokens  same                      0.2 s
                left out: a tool without a name
        db      failed (kept its last 3 tools, stale): it exited with code 1
        total      47 tools     13,145 tokens  34 added, 1 changed       2.0 s
        1 of 3 servers failed
        ");
    }
}
