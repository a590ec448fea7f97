//! The arguments of each command.

use std::{ffi::OsString, path::PathBuf, str::FromStr};

use clap::{ArgAction, Args, Subcommand};
use clap_complete::ArgValueCompleter;
use http_server::Listen;
use secrets::SecretName;

use super::complete::{complete_recipes, complete_servers, complete_tools};

#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
pub(crate) struct Init {
    /// Only this client; may be given again
    #[arg(long = "client", value_name = "CLIENT")]
    pub(crate) clients: Vec<String>,
    /// Leave the clients' own entries beside ours
    #[arg(long)]
    pub(crate) keep: bool,
    /// Take over what this project's files list, too, and take it out of them: a team may share
    /// them. Our entry never goes in there
    #[arg(long)]
    pub(crate) project: bool,
    /// Show every change, make none
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Ask nothing
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Put back what the last run changed
    #[arg(long, conflicts_with_all = ["clients", "keep", "project", "dry_run"])]
    pub(crate) undo: bool,
}

/// The address at which HTTP is served.
#[derive(Debug, Clone, Copy)]
pub(crate) enum HttpAt {
    Configured,
    Flag(Listen),
}

/// Stands for the address of the configuration.
pub(super) const CONFIGURED: &str = "http.listen";

impl FromStr for HttpAt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            CONFIGURED => Ok(Self::Configured),
            other => other
                .parse()
                .map(Self::Flag)
                .map_err(|error: http_server::NoAddress| error.to_string()),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Search {
    /// Words; or `select:a,b`, `+word` (must match), `*` (everything)
    #[arg(value_name = "QUERY", trailing_var_arg = false)]
    pub(crate) query: Vec<String>,
    /// Only this category or server
    #[arg(long)]
    pub(crate) category: Option<String>,
    /// Only tools with this tag; may be given again
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    /// Number of hits, 1 to 20
    #[arg(
        long,
        short = 'n',
        alias = "limit",
        default_value_t = 5,
        value_name = "COUNT"
    )]
    pub(crate) max_results: usize,
    /// Say what speaks for each hit, term by term
    #[arg(long)]
    pub(crate) why: bool,
    /// Number of hits to skip
    #[arg(long, default_value_t = 0, value_name = "COUNT")]
    pub(crate) offset: usize,
    /// Ask with servers of this process, without the daemon
    #[arg(long)]
    pub(crate) standalone: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Login {
    /// Remote servers of the configuration
    #[arg(
        required_unless_present = "all",
        conflicts_with = "all",
        value_name = "SERVER"
    )]
    #[arg(add = ArgValueCompleter::new(complete_servers))]
    pub(crate) servers: Vec<String>,
    /// Every remote server that has no login, and no key in its `headers`
    #[arg(long)]
    pub(crate) all: bool,
    /// Open no browser, print the address
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// Show a code to enter on another device, where the server has that
    #[arg(long)]
    pub(crate) device: bool,
    /// A scope to ask for besides those that are found out; may be given again
    #[arg(long = "scope", value_name = "SCOPE")]
    pub(crate) scopes: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Logout {
    /// Remote servers of the configuration
    #[arg(required = true, value_name = "SERVER", add = ArgValueCompleter::new(complete_servers))]
    pub(crate) servers: Vec<String>,
    /// Forget how this client is registered, too
    #[arg(long)]
    pub(crate) forget: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Secret {
    /// Keep one: it is asked for on a terminal, else read from stdin
    #[command(
        after_help = "Examples:\n  proxy secret set LINEAR_KEY\n  pass show linear | proxy secret set LINEAR_KEY"
    )]
    Set {
        /// Its name, as in `${secret:NAME}`
        #[arg(value_name = "NAME")]
        name: SecretName,
    },
    /// Print the name of each, a line each
    List,
    /// Forget some
    Rm {
        /// Their names
        #[arg(required = true, value_name = "NAME")]
        names: Vec<SecretName>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum UsageAction {
    /// Forget all of it
    Reset,
}

#[derive(Debug, Args)]
pub(crate) struct Call {
    /// The tool: `SERVER/TOOL`, or a name that one server has
    #[arg(add = ArgValueCompleter::new(complete_tools))]
    pub(crate) name: String,
    /// One JSON object, `-` to read it from stdin, or KEY=VALUE pairs (a value that is JSON is
    /// taken as such)
    #[arg(value_name = "ARGUMENTS")]
    pub(crate) arguments: Vec<String>,
    /// Milliseconds to wait for the result
    #[arg(long, value_name = "MS")]
    pub(crate) timeout_ms: Option<u64>,
    /// Cut the result at this many tokens
    #[arg(long, value_name = "COUNT")]
    pub(crate) max_tokens: Option<u64>,
    /// The whole result, however long
    #[arg(long)]
    pub(crate) raw: bool,
    /// Check the arguments, call nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Call with servers of this process, without the daemon
    #[arg(long)]
    pub(crate) standalone: bool,
}

/// All digits: a short digest names no definition.
fn read_digest(text: &str) -> Result<String, String> {
    let is_digest = text.len() == 64 && text.bytes().all(|it| it.is_ascii_hexdigit());
    if is_digest {
        Ok(text.to_ascii_lowercase())
    } else {
        Err("a digest has 64 hexadecimal digits; names stand before the option".to_owned())
    }
}

#[derive(Debug, Clone, Args)]
pub(crate) struct ReviewTools {
    /// A server, or one of its tools: `github/create_issue`
    #[arg(value_name = "SERVER", add = ArgValueCompleter::new(complete_servers))]
    pub(crate) server: Option<String>,
    /// Only these: a tool's own name, `instructions`, `prompt NAME`, `resource URI`, `template URI`
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Accept what was shown with this digest; on a terminal it may be left out
    #[arg(long, value_name = "DIGEST", num_args = 0..=1, action = ArgAction::Append, value_parser = read_digest, conflicts_with = "refuse")]
    pub(crate) accept: Option<Vec<String>>,
    /// Keep out what was shown with this digest, as long as it is as it was shown
    #[arg(long, value_name = "DIGEST", num_args = 0..=1, action = ArgAction::Append, value_parser = read_digest)]
    pub(crate) refuse: Option<Vec<String>>,
}

#[derive(Debug, Args)]
pub(crate) struct History {
    /// Only this server
    #[arg(value_name = "SERVER", add = ArgValueCompleter::new(complete_servers))]
    pub(crate) server: Option<String>,
    /// The difference between two entries, by their numbers
    #[arg(long, num_args = 2, value_names = ["A", "B"])]
    pub(crate) diff: Vec<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct Audit {
    #[command(subcommand)]
    pub(crate) action: Option<AuditAction>,
    /// Not older than this: `90s`, `15m`, `1h`, `7d`
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    pub(crate) since: Option<u64>,
    /// Only what was let in over HTTP by this token or OAuth subject
    #[arg(long, value_name = "NAME")]
    pub(crate) caller: Option<String>,
    /// Only of the client that announces this name
    #[arg(long, value_name = "CLIENT")]
    pub(crate) client: Option<String>,
    /// Only of this server
    #[arg(long, value_name = "SERVER", add = ArgValueCompleter::new(complete_servers))]
    pub(crate) server: Option<String>,
    /// Only of this tool, by its own name
    #[arg(long, value_name = "TOOL")]
    pub(crate) tool: Option<String>,
}

#[derive(Debug, Clone, Copy, Subcommand)]
pub(crate) enum AuditAction {
    /// Prove that the log is as it was written
    ///
    /// Exit code 0: it is; 1: it is not, and where.
    Verify,
}

fn parse_span(text: &str) -> Result<u64, String> {
    let hint = "write a number and a unit, such as 90s, 15m, 1h, 7d";
    files::clock::parse_span(text).ok_or_else(|| hint.to_owned())
}

#[derive(Debug, Args)]
pub(crate) struct Stats {
    /// Group the figures by this
    #[arg(long, value_enum, default_value_t = StatsBy::Tool)]
    pub(crate) by: StatsBy,
    /// Of the last days, today among them; 90 are kept
    #[arg(long, value_name = "COUNT", default_value_t = 30)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=90))]
    pub(crate) days: u64,
    /// Only so many lines
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    pub(crate) top: usize,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum StatsBy {
    Tool,
    Server,
    Client,
    Day,
}

#[derive(Debug, Args)]
pub(crate) struct Allow {
    /// `SERVER/TOOL`, or with a switch `SERVER/PROMPT`, `SERVER/URI`
    #[arg(value_name = "NAME", add = ArgValueCompleter::new(complete_tools))]
    pub(crate) name: String,
    /// It is a prompt
    #[arg(long, conflicts_with = "resource")]
    pub(crate) prompt: bool,
    /// It is a resource
    #[arg(long)]
    pub(crate) resource: bool,
    /// Only for the client that announces this name
    #[arg(long, value_name = "CLIENT")]
    pub(crate) client: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyAction {
    /// Say what would become of a call, and by which rule; calls nothing
    ///
    /// Exit code 0: it would be made; 1: a person would be asked, or it would be refused.
    #[command(
        after_help = "Examples:\n  proxy policy test files/write_file path=/etc/hosts\n  proxy policy test postgres/query '{\"sql\":\"drop table t\"}' --client cursor"
    )]
    Test {
        /// The tool: `SERVER/TOOL`, or a name that one server has
        #[arg(add = ArgValueCompleter::new(complete_tools))]
        name: String,
        /// One JSON object, `-` to read it from stdin, or KEY=VALUE pairs
        #[arg(value_name = "ARGUMENTS")]
        arguments: Vec<String>,
        /// As the client that announces this name
        #[arg(long, value_name = "CLIENT")]
        client: Option<String>,
    },
}

#[derive(Debug, Args)]
#[expect(clippy::struct_field_names, reason = "a field is named as its switch")]
pub(crate) struct Run {
    /// The script; `-` reads it from stdin
    #[arg(value_name = "FILE|-")]
    pub(crate) file: PathBuf,
    /// The value of `args` in it, as JSON
    #[arg(value_name = "ARGS")]
    pub(crate) args: Option<String>,
    /// Milliseconds that it may take
    #[arg(long, value_name = "MS")]
    pub(crate) timeout_ms: Option<u64>,
    /// Print the calls that it would make, and make none
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Call with servers of this process, without the daemon
    #[arg(long)]
    pub(crate) standalone: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Types {
    /// Only this server
    #[arg(value_name = "SERVER", add = ArgValueCompleter::new(complete_servers))]
    pub(crate) server: Option<String>,
    /// Write a file a server into this folder, for an editor
    #[arg(long, value_name = "FOLDER")]
    pub(crate) into: Option<PathBuf>,
    /// Ask with servers of this process, without the daemon
    #[arg(long)]
    pub(crate) standalone: bool,
}

pub(super) const ADD_EXAMPLES: &str = "\
Examples:
  proxy add memory                                           from its recipe; `proxy recipes` lists them
  proxy add filesystem ~/projects                            with the value that its recipe asks for
  proxy add notes -- npx -y notes-mcp --folder ~/notes
  proxy add issues --env ISSUES_TOKEN -- uvx issues-mcp      the token comes from the environment
  proxy add docs https://docs.example.com/mcp --header 'Authorization: Bearer ${DOCS_TOKEN}'";

#[derive(Debug, Args)]
pub(crate) struct Add {
    /// Its name: lower-case letters, digits and `-`; left out, one is made of the rest
    #[arg(add = ArgValueCompleter::new(complete_recipes))]
    pub(crate) name: Option<String>,
    /// The address of a server that runs elsewhere; or, for a recipe, the value it asks for
    #[arg(value_name = "URL|VALUE")]
    pub(crate) url: Option<String>,
    /// The command that starts it, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
    /// A variable it gets: NAME=VALUE, or NAME to take it from the environment at each start
    #[arg(long, short = 'e', value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,
    /// A value that its recipe asks for; may be given again
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// A name of your own for a server that is added by its recipe
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) alias: Option<String>,
    /// A header sent to its address; `${VAR}` in it is filled in at each start
    #[arg(long, short = 'H', value_name = "NAME: VALUE")]
    pub(crate) header: Vec<String>,
    /// The folder it runs in
    #[arg(long, value_name = "FOLDER")]
    pub(crate) cwd: Option<String>,
    /// Category of its tools; narrows a search
    #[arg(long)]
    pub(crate) category: Option<String>,
    /// A word its tools are found by; may be given again
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    /// A process for each client, in that client's folder
    #[arg(long)]
    pub(crate) per_client: bool,
    /// Add it switched off, and do not ask it
    #[arg(long)]
    pub(crate) disabled: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Read {
    /// The handle of the result, from the footer where it was cut
    #[arg(value_name = "HANDLE")]
    pub(crate) handle: String,
    /// One part, as a client reads it; all parts joined are the whole
    #[arg(long, value_name = "NUMBER", group = "what")]
    pub(crate) part: Option<usize>,
    /// Lines (or bytes, or matches) to pass over; negative counts from the end
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    pub(crate) offset: Option<i64>,
    /// Number of lines (or bytes, or matches)
    #[arg(long, value_name = "COUNT")]
    pub(crate) limit: Option<usize>,
    /// Count offset and limit in bytes
    #[arg(long)]
    pub(crate) bytes: bool,
    /// Lines that match a regular expression, with two lines around
    #[arg(long, value_name = "REGEX", group = "what")]
    pub(crate) grep: Option<String>,
    /// The values that a jq expression answers, a line each
    #[arg(long, value_name = "JQ", group = "what")]
    pub(crate) select: Option<String>,
    /// Stop at this many tokens [default: no limit]
    #[arg(long, value_name = "COUNT")]
    pub(crate) max_tokens: Option<usize>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Check it, and say every mistake at once
    Check,
    /// Print where it is looked for
    Path,
    /// Print the reference of all keys (`docs/configuration.md`)
    Docs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Daemon {
    /// Start it, if it does not run; a client's `proxy serve` does so by itself
    Start,
    /// End it with all its servers; the next message of a client starts another
    Stop,
    /// End it and start another
    Restart,
    /// Show it, its clients and its servers, as `proxy status` does
    Status,
    /// Print its log, the oldest line first
    Logs {
        /// Only the last lines
        #[arg(long, short = 'n', value_name = "COUNT")]
        lines: Option<usize>,
    },
    /// Print the path of its socket, for a unit of systemd
    Socket,
    /// Run it in the foreground, or under systemd (`config/systemd/`)
    Run {
        /// Started by `launch`: stdout is the way for a report
        #[arg(long, hide = true)]
        launched: bool,
    },
    /// Start `run` with our stdin, which is its socket, and end
    #[command(hide = true)]
    Launch,
}

/// The limits of a sandboxed server, and its command.
#[derive(Debug, Args)]
pub(crate) struct Confine {
    #[arg(long)]
    pub(crate) network: bool,
    #[arg(long, value_name = "PATH")]
    pub(crate) write: Vec<PathBuf>,
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}
