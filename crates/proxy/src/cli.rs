//! The command line.

use std::{ffi::OsString, path::PathBuf, str::FromStr};

use clap::{ArgAction, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use clap_complete::{ArgValueCompleter, Shell};
use config::Overrides;
use http_server::Listen;
use secrets::SecretName;

use crate::{exit::Exit, report};

pub(crate) mod complete;
mod groups;

use complete::{complete_recipes, complete_servers, complete_tools};

const EXAMPLES: &str = "\
Examples:
  proxy demo                                       see it work, without any configuration
  proxy init                                       take over your clients' servers
  proxy reindex                                    ask every configured server for its tools
  proxy search create a github issue               the tools that fit, a line each
  proxy describe github/create_issue               everything about one of them
  proxy call github/create_issue owner=acme repo=site title='Broken link'
  proxy tokens                                     what your clients save
  claude mcp add proxy -- proxy serve              give Claude Code this one entry

Exit codes: 0 hit or success, 1 no hit or tool error, 2 usage or configuration error,
            3 (reindex) some servers failed";

/// One MCP server that stands for all of them.
#[derive(Debug, Parser)]
#[command(name = "proxy", version, after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Default, Args)]
pub(crate) struct Global {
    #[arg(long, global = true, value_name = "FILE")]
    #[arg(
        help = "The configuration [default: $XDG_CONFIG_HOME/proxy/config.toml] [env: PROXY_CONFIG]"
    )]
    config: Option<PathBuf>,
    #[arg(long, global = true, value_name = "FOLDER")]
    #[arg(help = "Where snapshots, index and results are kept [env: PROXY_STATE_DIR]")]
    state_dir: Option<PathBuf>,
    #[arg(long, global = true, value_name = "FILTER")]
    #[arg(
        help = "What goes to stderr, or to the log of the daemon, a filter such as `info,fleet=debug` [env: PROXY_LOG]"
    )]
    log: Option<String>,
    /// Say more: -v what happens, -vv how
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Print JSON, and nothing else, on stdout
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// No progress bar
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
}

/// The rooms that log, each under its own name.
const ROOMS: [&str; 7] = [
    "proxy",
    "gateway",
    "daemon",
    "http_server",
    "fleet",
    "processes",
    "registry",
];

/// The filter that lets what is ours through from this level on.
pub(crate) fn filter_of(level: &str) -> String {
    let ours = ROOMS.map(|room| format!(",{room}={level}"));
    format!("warn{}", ours.concat())
}

impl Global {
    pub(crate) fn overrides(&self) -> Overrides {
        let verbose = match self.verbose {
            0 => None,
            1 => Some(filter_of("info")),
            _ => Some(filter_of("debug")),
        };
        Overrides {
            config: self.config.clone(),
            state_dir: self.state_dir.clone(),
            log: self.log.clone().or(verbose),
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Move in: take over the servers of your clients, and give each client one entry
    ///
    /// Looks for MCP clients, writes their servers into the configuration, asks these for their
    /// tools, puts this program into each client's file and takes out what it stands for now. A
    /// server that does not answer stays with its clients. Every file is copied first, and
    /// `--undo` puts all of them back. On a terminal it shows what it found and asks.
    #[command(
        after_help = "Examples:\n  proxy init --dry-run                 show every change, make none\n  proxy init --yes                     ask nothing\n  proxy init --client cursor --keep    Cursor alone, and its entries stay\n  proxy init --undo                    put everything back\n\nExit codes: 0 all of it, 3 something stays where it was (it says what), 2 nothing was done"
    )]
    Init(Init),
    /// Take servers over from clients and files, and change none of them
    #[command(
        after_help = "Examples:\n  proxy import                      from every client that is here\n  proxy import cursor .mcp.json     from a client, and from a file\n  pbpaste | proxy import -          what a README says to paste\n  proxy import server.json          a server of the registry\n  proxy import notes.mcpb           a bundle"
    )]
    Import {
        /// Clients, files, or `-` for stdin [default: every client]
        #[arg(value_name = "CLIENT|FILE")]
        from: Vec<String>,
        /// Show the change of the configuration, make none
        #[arg(long)]
        dry_run: bool,
    },
    /// Serve one MCP client over stdin and stdout, or any number over HTTP
    ///
    /// This is what a client's configuration names. It answers at once from the last snapshots;
    /// a server starts when one of its tools is first called, or with us where the configuration
    /// says so. All clients of one configuration share one daemon, which the first of them starts,
    /// and with it one process for each server.
    #[command(
        after_help = "Examples:\n  proxy serve                        what a client's configuration names\n  proxy serve --http                 at `http.listen` of the configuration\n  proxy serve --http 127.0.0.1:7331  clients connect to http://127.0.0.1:7331/mcp"
    )]
    Serve {
        /// Do everything in this process, with servers of its own, and without the daemon
        #[arg(long)]
        standalone: bool,
        /// Serve over streamable HTTP at this address, `/mcp` [default: `http.listen`]
        ///
        /// Served by the daemon, beside its other clients, for as long as this command runs. A port
        /// alone is one of this machine. Any address that other machines can reach needs a token in
        /// the configuration.
        #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = CONFIGURED)]
        http: Option<HttpAt>,
    },
    /// Show the daemon, its clients and its servers
    Status {
        /// Draw it again every so many seconds, until Ctrl-C
        #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1")]
        #[arg(value_parser = clap::value_parser!(u64).range(1..=3600))]
        watch: Option<u64>,
    },
    /// Begin, end and look at the daemon that all clients share
    #[command(subcommand)]
    Daemon(Daemon),
    /// Ask servers for their tools and bring the index up to date
    ///
    /// A server that fails keeps its last snapshot, marked stale. Exit code 0: all answered;
    /// 3: some did; 1: none did.
    Reindex {
        /// Only these servers [default: all]
        #[arg(value_name = "SERVER", add = ArgValueCompleter::new(complete_servers))]
        servers: Vec<String>,
    },
    /// Find tools
    #[command(
        after_help = "Examples:\n  proxy search create github issue\n  proxy search --category files '*'\n  proxy search 'select:git/git_status,git/git_diff'\n  proxy search send +mail"
    )]
    Search(Search),
    /// Show one tool, or several: schema, notes, example
    #[command(
        after_help = "Examples:\n  proxy describe github/create_issue\n  proxy describe create_issue --json | jq .input_schema"
    )]
    Describe {
        #[arg(required = true, value_name = "NAME", add = ArgValueCompleter::new(complete_tools))]
        names: Vec<String>,
        /// Ask with servers of this process, without the daemon
        #[arg(long)]
        standalone: bool,
    },
    /// Call a tool
    #[command(
        after_help = "Examples:\n  proxy call git/git_status repo_path=.\n  proxy call git/git_status '{\"repo_path\":\".\"}'\n  proxy call git/git_status - < arguments.json"
    )]
    Call(Call),
    /// Run a script that calls tools, and print its answer
    ///
    /// TypeScript or JavaScript: every server is a global, the last expression or what is returned
    /// is the answer. Exit code 0: it has one; 1: it failed or met a limit.
    #[command(
        after_help = "Examples:\n  proxy run triage.ts '{\"state\": \"open\"}'\n  echo 'await search(\"create issue\")' | proxy run -\n  proxy run triage.ts --dry-run"
    )]
    Run(Run),
    /// Print TypeScript declarations of servers, for scripts
    #[command(after_help = "Examples:\n  proxy types github\n  proxy types --into types/")]
    Types(Types),
    /// List every tool, a line each
    List {
        /// Only the tools of this server or category
        #[arg(value_name = "SERVER|CATEGORY", add = ArgValueCompleter::new(complete_servers))]
        of: Option<String>,
        /// Ask with servers of this process, without the daemon
        #[arg(long)]
        standalone: bool,
    },
    /// Count tools by category, and by tag
    Categories,
    /// List the configured servers: tools, tokens, last use, and why one failed
    Servers,
    /// Add a server to the configuration, and ask it for its tools
    #[command(after_help = ADD_EXAMPLES)]
    Add(Add),
    /// Remove servers from the configuration, with the rules that name them alone
    ///
    /// On a terminal the rules are shown, and removed only after a yes. A rule or list that names other
    /// servers too loses only this name. Patterns such as `f*` stay, and are told.
    Remove {
        #[arg(required = true, value_name = "SERVER", add = ArgValueCompleter::new(complete_servers))]
        servers: Vec<String>,
        /// Keep the rules: they hold for any server that gets the name
        #[arg(long)]
        keep_rules: bool,
    },
    /// Switch servers on
    Enable {
        #[arg(required = true, value_name = "SERVER", add = ArgValueCompleter::new(complete_servers))]
        servers: Vec<String>,
    },
    /// Switch servers off; their tables stay
    Disable {
        #[arg(required = true, value_name = "SERVER", add = ArgValueCompleter::new(complete_servers))]
        servers: Vec<String>,
    },
    /// Have servers of the daemon begin anew, at their next call
    Restart {
        #[arg(required = true, value_name = "SERVER", add = ArgValueCompleter::new(complete_servers))]
        servers: Vec<String>,
    },
    /// Give a server another name, with its rules, accepted tools, logins and history
    Rename {
        #[arg(value_name = "SERVER", add = ArgValueCompleter::new(complete_servers))]
        from: String,
        #[arg(value_name = "NAME")]
        to: String,
    },
    /// Log in to remote servers that ask for it
    ///
    /// Finds out who guards the server, registers this client there where it has to, and opens a
    /// browser. Without one (over SSH, in a container) the address is printed, and the address at
    /// which the browser ends can be pasted. The login is kept in the state folder and renewed by
    /// itself.
    #[command(
        after_help = "Examples:\n  proxy login linear\n  proxy login linear --no-browser      print the address, paste the last one back\n  proxy login github --device          enter a code on another device\n  proxy login --all                    every remote server without a login\n\nExit codes: 0 logged in, 3 in to some of them, 1 in to none, 2 wrong usage"
    )]
    Login(Login),
    /// Log out of remote servers
    Logout(Logout),
    /// Keep secrets out of the configuration
    ///
    /// `${secret:NAME}` in a text of the configuration stands for one. They are kept in one file of
    /// the state folder that nobody else may read.
    #[command(subcommand)]
    Secret(Secret),
    /// Show tools that are not as they were accepted, and accept or refuse them
    ///
    /// A server is accepted with the tools, prompts, resources and instructions that it has when it is
    /// added. What changed since or came later is shown with its difference, its digest, and signs
    /// that it was written to steer a model. `pin = "hold"` keeps it from models until it is accepted;
    /// what is refused is kept from them in any case.
    ///
    /// Accepting names the digest of the list that was shown, or of one definition in it: what has
    /// changed since is not accepted. What was refused is accepted only under its name.
    #[command(
        after_help = "Examples:\n  proxy review notes                          ends with the command that accepts all of it\n  proxy review notes --accept DIGEST          what was shown with this digest\n  proxy review notes add_note --refuse DIGEST\n  proxy review notes --accept                 on a terminal: shows it and asks\n\nExit codes: 0 nothing waits, or it is decided, 1 something waits, or nothing by this name does, 2 wrong usage, or changed since it was shown"
    )]
    Review(ReviewTools),
    /// Show what surveys changed: tools added, changed, removed
    #[command(
        after_help = "Examples:\n  proxy history\n  proxy history notes --diff 0 3    from before the first to the third"
    )]
    History(History),
    /// Show what was called: by whom, when, how it ended
    #[command(
        after_help = "Examples:\n  proxy audit --since 1h\n  proxy audit --client claude-code --server files --json\n  proxy audit --caller ci             over HTTP, by this token\n  proxy audit verify                 is it what was written?"
    )]
    Audit(Audit),
    /// Show figures: calls, errors, times, tokens, searches without a hit
    #[command(
        after_help = "Examples:\n  proxy stats\n  proxy stats --by client --days 7\n  proxy stats --by day --json"
    )]
    Stats(Stats),
    /// Allow a tool for good, by a rule of its own
    ///
    /// The rule goes directly before the one that restricts the tool. Without `--client` the rule is for every client, and
    /// rules for certain clients stay before it. Where a rule reads arguments, edit the configuration.
    #[command(
        after_help = "Examples:\n  proxy allow files/write_file\n  proxy allow files/write_file --client cursor\n  proxy allow --resource files/file:///etc/hosts"
    )]
    Allow(Allow),
    /// Look at the rules for calls
    #[command(subcommand)]
    Policy(PolicyAction),
    /// Show how often tools were called, and how much was learned from it
    Usage {
        #[command(subcommand)]
        action: Option<UsageAction>,
    },
    /// Print a result that was cut: whole, or what you ask for
    #[command(
        after_help = "Examples:\n  proxy read r0123456789abcdef > whole.txt\n  proxy read r0123456789abcdef --grep 'ERROR|WARN'\n  proxy read r0123456789abcdef --select '.items[].id'\n  proxy read r0123456789abcdef --offset -20"
    )]
    Read(Read),
    /// Print what a server wrote to its stderr, the oldest first
    Log {
        #[arg(value_name = "SERVER", add = ArgValueCompleter::new(complete_servers))]
        server: String,
        /// Only the last lines
        #[arg(long, short = 'n', value_name = "COUNT")]
        lines: Option<usize>,
    },
    /// Show what all definitions would cost loaded up front, and what ours cost
    Tokens {
        /// Every tool, the heaviest first
        #[arg(long)]
        by_tool: bool,
    },
    /// Find what is wrong with this machine and this configuration, and what to type
    ///
    /// Programs, variables, every server started once, rules without effect, secrets in clear,
    /// clients, the daemon, the state folder. Changes nothing, prints no value. Exit code 0:
    /// nothing is wrong, or warnings alone; 1: something does not work; 2: something could not be
    /// found out.
    Doctor {
        /// Start nothing: no server, and no program that is asked for its version
        #[arg(long)]
        offline: bool,
    },
    /// List and search the servers that are known by heart: what they give, what they take
    ///
    /// One name shows all that is known of it, and the table for the configuration.
    #[command(
        after_help = "Examples:\n  proxy recipes\n  proxy recipes browser screenshot\n  proxy recipes github\n  proxy recipes --json | jq '.[].name'"
    )]
    Recipes {
        #[arg(value_name = "WORDS|NAME")]
        words: Vec<String>,
    },
    /// Look at the configuration
    #[command(subcommand)]
    Config(Config),
    /// Print what teaches a shell to complete commands, servers and tools
    #[command(
        after_help = "Examples:\n  echo 'source <(proxy completions bash)' >> ~/.bashrc\n  echo 'source <(proxy completions zsh)' >> ~/.zshrc\n  proxy completions fish > ~/.config/fish/completions/proxy.fish"
    )]
    Completions { shell: Shell },
    /// Print the manual page, or write a page a command into a folder
    Man {
        #[arg(value_name = "FOLDER")]
        folder: Option<PathBuf>,
    },
    /// See it work: real servers from inside this program, a session to follow
    Demo,
    /// Ends the servers of a proxy that died (started by every proxy that has servers)
    #[command(hide = true)]
    Reaper,
    /// Reads on in a kept result (started by `read` and by `proxy/read_result`)
    #[command(hide = true)]
    Helper,
    /// Runs one script (started by `run` and by `proxy/run_script`)
    #[command(hide = true)]
    ScriptHelper,
    /// Starts a server that has a `sandbox` (started by every proxy that has one)
    #[command(hide = true)]
    Confine(Confine),
    /// One of the demo's servers (started by `demo`)
    #[command(hide = true)]
    DemoServer { name: String },
}

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
const CONFIGURED: &str = "http.listen";

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
    /// How many, 1 to 20
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
    /// How many to pass over
    #[arg(long, default_value_t = 0, value_name = "COUNT")]
    pub(crate) offset: usize,
    /// Ask with servers of this process, without the daemon
    #[arg(long)]
    pub(crate) standalone: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Login {
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
        #[arg(value_name = "NAME")]
        name: SecretName,
    },
    /// Print the name of each, a line each
    List,
    /// Forget some
    Rm {
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

#[derive(Debug, Args)]
pub(crate) struct ReviewTools {
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
    telemetry::parse_ago(text).ok_or_else(|| hint.to_owned())
}

#[derive(Debug, Args)]
pub(crate) struct Stats {
    /// What figures are added up by
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

const ADD_EXAMPLES: &str = "\
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
    /// What it is about; narrows a search
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
    #[arg(value_name = "HANDLE")]
    pub(crate) handle: String,
    /// One part, as a client reads it; all parts joined are the whole
    #[arg(long, value_name = "NUMBER", group = "what")]
    pub(crate) part: Option<usize>,
    /// Lines (or bytes, or matches) to pass over; negative counts from the end
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    pub(crate) offset: Option<i64>,
    /// How many lines (or bytes, or matches)
    #[arg(long, value_name = "COUNT")]
    pub(crate) limit: Option<usize>,
    /// Count offset and limit in bytes
    #[arg(long)]
    pub(crate) bytes: bool,
    /// Lines that match a regular expression, with two lines around
    #[arg(long, value_name = "REGEX", group = "what")]
    pub(crate) grep: Option<String>,
    /// The value at a JSON pointer
    #[arg(long, value_name = "POINTER", group = "what")]
    pub(crate) pointer: Option<String>,
    /// The values that a jq expression answers, a line each
    #[arg(long, value_name = "JQ", group = "what")]
    pub(crate) select: Option<String>,
    /// The passages that fit these words best
    #[arg(long, value_name = "WORDS", group = "what")]
    pub(crate) find: Option<String>,
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
    /// Be it, in the foreground or under systemd (`config/systemd/`)
    Run {
        /// Started by `launch`: stdout is the way for a report
        #[arg(long, hide = true)]
        launched: bool,
    },
    /// Start `run` with our stdin, which is its socket, and end
    #[command(hide = true)]
    Launch,
}

/// What a server keeps, and its command.
#[derive(Debug, Args)]
pub(crate) struct Confine {
    #[arg(long)]
    pub(crate) network: bool,
    #[arg(long, value_name = "PATH")]
    pub(crate) write: Vec<PathBuf>,
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}

/// The command line as clap knows it, its commands grouped by task.
pub(crate) fn command() -> clap::Command {
    let command = Arguments::command();
    let groups = groups::render(&command);
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}\nOptions:\n{{options}}{{after-help}}"
    ))
}

/// The same with its usual help: a manual page lists commands by itself.
pub(crate) fn command_for_manual() -> clap::Command {
    Arguments::command()
}

/// The parsed command line; or help, a version, a complaint was printed and this is its code.
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Arguments, Exit> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if let Some(parsed) = parse_serve(&arguments) {
        return Ok(parsed);
    }
    let matches = command().try_get_matches_from(&arguments);
    let parsed = matches.and_then(|matches| Arguments::from_arg_matches(&matches));
    parsed.map_err(|error| {
        report::print_clap(&error);
        if error.use_stderr() {
            if let Some(hint) = hint_for(&error, &arguments) {
                report::say(&format!("hint: {hint}"));
            }
            Exit::Usage
        } else {
            Exit::Success
        }
    })
}

/// What clients' configurations name, word for word. It is read at the start of every session, and to
/// have clap know all other commands for it takes longer than to connect.
fn parse_serve(arguments: &[OsString]) -> Option<Arguments> {
    let words: Vec<&str> = arguments
        .iter()
        .skip(1)
        .map(|it| it.to_str())
        .collect::<Option<_>>()?;
    let standalone = match words.as_slice() {
        ["serve"] => false,
        ["serve", "--standalone"] => true,
        _ => return None,
    };
    Some(Arguments {
        global: Global::default(),
        command: Command::Serve {
            standalone,
            http: None,
        },
    })
}

/// What was meant by a command line that clap does not understand, where it is a common one.
fn hint_for(error: &clap::Error, arguments: &[OsString]) -> Option<&'static str> {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(word)) => match word.as_str() {
            "start" | "stop" => Some("the daemon: `proxy daemon start`, `proxy daemon stop`"),
            "install" => Some("proxy add NAME"),
            "mcp" => Some("`proxy add`, `proxy servers`, `proxy remove`"),
            _ => None,
        },
        _ => {
            let is_add = arguments.iter().any(|word| word == "add");
            (is_add && error.kind() == ErrorKind::UnknownArgument).then_some(
                "the command of a server comes after `--`: proxy add NAME -- npx -y PACKAGE",
            )
        }
    }
}

#[cfg(test)]
mod tests;
