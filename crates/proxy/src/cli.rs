//! The command line.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use clap_complete::{ArgValueCompleter, Shell};
use config::Overrides;

use crate::{exit::Exit, report};

mod args;
pub(crate) mod complete;
mod groups;

use args::{ADD_EXAMPLES, CONFIGURED};
pub(crate) use args::{
    Add, Allow, Audit, AuditAction, Call, Config, Confine, Daemon, History, HttpAt, Init, Login,
    Logout, PolicyAction, Read, ReviewTools, Run, Search, Secret, Stats, StatsBy, Types,
    UsageAction,
};
use complete::{complete_servers, complete_tools};

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
    /// Move in: import your clients' servers, give each client one entry
    ///
    /// Looks for MCP clients, writes their servers into the configuration, asks these for their
    /// tools, puts this program into each client's file and takes out what it stands for now. A
    /// server that does not answer stays with its clients. Every file is copied first, and
    /// `--undo` puts all of them back. On a terminal it shows what it found and asks.
    #[command(
        after_help = "Examples:\n  proxy init --dry-run                 show every change, make none\n  proxy init --yes                     ask nothing\n  proxy init --client cursor --keep    Cursor alone, and its entries stay\n  proxy init --undo                    put everything back\n\nExit codes: 0 all of it, 3 something stays where it was (it says what), 2 nothing was done"
    )]
    Init(Init),
    /// Import servers from clients and files without modifying them
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
    /// Serve one MCP client over stdin and stdout, or many over HTTP
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
    /// Start, stop and inspect the shared daemon
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
        /// Tools: `SERVER/TOOL`, or a name that one server has; a server lists its tools
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
    /// List servers: tools, tokens, last use, and why one failed
    Servers,
    /// Add a server to the configuration, and ask it for its tools
    #[command(after_help = ADD_EXAMPLES)]
    Add(Add),
    /// Remove servers, with the rules that name only them
    ///
    /// On a terminal the rules are shown, and removed only after a yes. A rule or list that names other
    /// servers too loses only this name. Patterns such as `f*` stay, and are told.
    Remove {
        /// Servers of the configuration
        #[arg(required = true, value_name = "SERVER", add = ArgValueCompleter::new(complete_servers))]
        servers: Vec<String>,
        /// Keep the rules: they hold for any server that gets the name
        #[arg(long)]
        keep_rules: bool,
    },
    /// Switch servers on
    Enable {
        /// Servers of the configuration
        #[arg(required = true, value_name = "SERVER", add = ArgValueCompleter::new(complete_servers))]
        servers: Vec<String>,
    },
    /// Switch servers off; their tables stay
    Disable {
        /// Servers of the configuration
        #[arg(required = true, value_name = "SERVER", add = ArgValueCompleter::new(complete_servers))]
        servers: Vec<String>,
    },
    /// Restart servers of the daemon, at their next call
    Restart {
        /// Servers of the configuration
        #[arg(required = true, value_name = "SERVER", add = ArgValueCompleter::new(complete_servers))]
        servers: Vec<String>,
    },
    /// Rename a server, with its rules, accepted tools, logins, history
    Rename {
        /// The server of the configuration
        #[arg(value_name = "SERVER", add = ArgValueCompleter::new(complete_servers))]
        from: String,
        /// Its new name: lower-case letters, digits and `-`
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
    /// Show tools that changed since they were accepted, and decide
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
    /// Show calls, errors, times, tokens, searches without a hit
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
    /// Show how often tools were called, and what was learned from it
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
        /// The server of the configuration
        #[arg(value_name = "SERVER", add = ArgValueCompleter::new(complete_servers))]
        server: String,
        /// Only the last lines
        #[arg(long, short = 'n', value_name = "COUNT")]
        lines: Option<usize>,
    },
    /// Count the tokens of all definitions, and those of ours
    Tokens {
        /// Every tool, the heaviest first
        #[arg(long)]
        by_tool: bool,
    },
    /// Find problems of this machine and configuration, with next steps
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
    /// List and search servers whose settings are built in
    ///
    /// One name shows all that is known of it, and the table for the configuration.
    #[command(
        after_help = "Examples:\n  proxy recipes\n  proxy recipes browser screenshot\n  proxy recipes github\n  proxy recipes --json | jq '.[].name'"
    )]
    Recipes {
        /// Words to search for, or the name of one [default: list all]
        #[arg(value_name = "WORDS|NAME")]
        words: Vec<String>,
    },
    /// Look at the configuration
    #[command(subcommand)]
    Config(Config),
    /// Print a script that completes commands, servers and tools
    #[command(
        after_help = "Examples:\n  echo 'source <(proxy completions bash)' >> ~/.bashrc\n  echo 'source <(proxy completions zsh)' >> ~/.zshrc\n  proxy completions fish > ~/.config/fish/completions/proxy.fish"
    )]
    Completions {
        /// The shell to print it for
        shell: Shell,
    },
    /// Print the manual page, or write a page for each command
    Man {
        /// Folder for a page of each command [default: print one page]
        #[arg(value_name = "FOLDER")]
        folder: Option<PathBuf>,
    },
    /// Play a session with servers that are part of this program
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

/// Parses `serve` as the configurations of clients write it. Each session begins with it, and clap's
/// table of all other commands takes longer than a connection.
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

/// Options of earlier versions, and the ones that replace them.
const REMOVED: [(&str, &str); 2] = [
    (
        "--find",
        "`--find` was removed: `--grep REGEX` prints the lines that match",
    ),
    (
        "--pointer",
        "`--pointer` was removed: `--select JQ` prints values, such as `.items[3].name`",
    ),
];

/// A hint for a command line that clap rejects, where its mistake is a common one.
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
            if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg)
                && let Some((_, hint)) = REMOVED.into_iter().find(|(option, _)| option == word)
            {
                return Some(hint);
            }
            let is_add = arguments.iter().any(|word| word == "add");
            (is_add && error.kind() == ErrorKind::UnknownArgument).then_some(
                "the command of a server comes after `--`: proxy add NAME -- npx -y PACKAGE",
            )
        }
    }
}

#[cfg(test)]
mod tests;
