//! The command line: the list of commands, and the dispatch to them.

use std::ffi::OsString;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use self::global::Global;
use crate::{
    commands::{
        self, add, audit, call, cluster, completions, config, confine, daemon, demo, describe,
        doctor, enrich, generate, init, login, logs, policy, reindex, remove, review, run, search,
        secret, serve, servers, stats, status, web,
    },
    exit::Exit,
    report,
};

pub(crate) mod complete;
pub(crate) mod global;
mod groups;
mod removed;

/// In the manual page and in `docs/commands.md`.
const EXIT_CODES: &str = "\
Exit codes: 0 success, 1 nothing found or a tool error, 2 wrong usage or
            configuration, 3 (reindex, init, login) some failed,
            10 to 12 see `proxy review --help`";

/// One MCP server that stands in for all of your MCP servers.
#[derive(Debug, Parser)]
#[command(name = "proxy", version, after_help = EXIT_CODES, arg_required_else_help = true)]
pub(crate) struct CommandLine {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// Every command. The help texts stand beside the arguments of each, in `commands`.
#[derive(Debug, Subcommand)]
enum Command {
    Init(init::InitArgs),
    Add(add::AddArgs),
    Remove(remove::RemoveArgs),
    Servers(servers::ServersArgs),
    Logs(logs::LogsArgs),
    Login(login::LoginArgs),
    #[command(subcommand)]
    Secret(secret::SecretAction),
    Serve(serve::ServeArgs),
    Status(status::StatusArgs),
    Web(web::WebArgs),
    #[command(subcommand)]
    Daemon(daemon::DaemonAction),
    #[command(subcommand)]
    Cluster(cluster::ClusterAction),
    Search(search::SearchArgs),
    Describe(describe::DescribeArgs),
    Call(call::CallArgs),
    Run(run::RunArgs),
    Review(review::ReviewArgs),
    #[command(subcommand)]
    Policy(policy::PolicyAction),
    Audit(audit::AuditArgs),
    Reindex(reindex::ReindexArgs),
    #[command(hide = true)]
    Enrich(enrich::EnrichArgs),
    Stats(stats::StatsArgs),
    Doctor(doctor::DoctorArgs),
    /// Play a session with a built-in server
    #[command(hide = true)]
    Demo,
    #[command(subcommand)]
    Config(config::ConfigAction),
    Completions(completions::CompletionsArgs),
    #[command(subcommand, hide = true)]
    Generate(generate::GenerateAction),
    /// Ends the servers of a proxy that died (started by every proxy that has servers)
    #[command(hide = true)]
    Reaper,
    /// Searches a stored result (started by `call --handle` and by `proxy/read_result`)
    #[command(hide = true)]
    Helper,
    /// Runs one script (started by `run` and by `proxy/run_script`)
    #[command(hide = true)]
    ScriptHelper,
    #[command(hide = true)]
    Confine(confine::ConfineArgs),
    /// Runs the server of the demo (started by `demo`)
    #[command(hide = true)]
    DemoServer,
}

impl Command {
    fn run(self, global: &Global) -> anyhow::Result<Exit> {
        match self {
            Self::Init(args) => args.run(global),
            Self::Add(args) => args.run(global),
            Self::Remove(args) => args.run(global),
            Self::Servers(args) => args.run(global),
            Self::Logs(args) => args.run(global),
            Self::Login(args) => args.run(global),
            Self::Secret(action) => action.run(global),
            Self::Serve(args) => args.run(global),
            Self::Status(args) => args.run(global),
            Self::Web(args) => args.run(global),
            Self::Daemon(action) => action.run(global),
            Self::Cluster(action) => action.run(global),
            Self::Search(args) => args.run(global),
            Self::Describe(args) => args.run(global),
            Self::Call(args) => args.run(global),
            Self::Run(args) => args.run(global),
            Self::Review(args) => args.run(global),
            Self::Policy(action) => action.run(global),
            Self::Audit(args) => args.run(global),
            Self::Reindex(args) => args.run(global),
            Self::Enrich(args) => args.run(global),
            Self::Stats(args) => args.run(global),
            Self::Doctor(args) => args.run(global),
            Self::Demo => demo::play(),
            Self::Config(action) => action.run(global),
            Self::Completions(args) => args.run(),
            Self::Generate(action) => {
                let command = CommandLine::command().name(complete::program_name());
                action.run(global, command)
            }
            Self::Reaper => {
                processes::reap(std::io::BufReader::new(std::io::stdin()));
                Ok(Exit::Success)
            }
            Self::Helper => Ok(commands::call::kept::work_as_helper()),
            Self::ScriptHelper => Ok(commands::run::work_as_helper()),
            Self::Confine(args) => args.become_command(),
            Self::DemoServer => demo::serve(),
        }
    }
}

/// Parses the command line and runs the command. Help, mistakes and errors are printed.
pub(crate) fn run(words: impl IntoIterator<Item = OsString>) -> Exit {
    let CommandLine {
        global, command, ..
    } = match parse(words) {
        Ok(parsed) => parsed,
        Err(exit) => return exit,
    };
    let ended = command.run(&global);
    ended.unwrap_or_else(|error| report::fail(&error))
}

/// The command line as clap knows it. The help of the program has its commands in groups; that of a command has its
/// examples first and the global options last.
pub(crate) fn command() -> clap::Command {
    let command = CommandLine::command();
    let groups = groups::render(&command);
    command
        .help_template(format!(
            "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n\
             {groups}\nGlobal options:\n{{options}}"
        ))
        .mut_subcommands(put_examples_first)
}

fn put_examples_first(command: clap::Command) -> clap::Command {
    command
        .help_template("{about-with-newline}\n{usage-heading} {usage}{after-help}\n\n{all-args}")
        .mut_subcommands(put_examples_first)
}

/// Returns the parsed command line; or the exit code, after help, the version or an error was printed.
fn parse(words: impl IntoIterator<Item = OsString>) -> Result<CommandLine, Exit> {
    let mut words: Vec<OsString> = words.into_iter().collect();
    if let Some(parsed) = parse_serve(&words) {
        return Ok(parsed);
    }
    if let Some((replaced, sentence)) = removed::replace_command(&words) {
        report::say(&sentence);
        words = replaced;
    }
    let matches = command().try_get_matches_from(&words);
    let parsed = matches.and_then(|matches| CommandLine::from_arg_matches(&matches));
    parsed.map_err(|error| {
        report::print_clap(&error);
        if !error.use_stderr() {
            return Exit::Success;
        }
        if let Some(hint) = find_hint(&error, &words) {
            report::say(&format!("hint: {hint}"));
        }
        Exit::Usage
    })
}

/// Parses `serve` as the configurations of clients write it. Each session starts with it, and building
/// clap's table of all other commands takes longer than a connection.
fn parse_serve(words: &[OsString]) -> Option<CommandLine> {
    let words: Vec<&str> = words
        .iter()
        .skip(1)
        .map(|it| it.to_str())
        .collect::<Option<_>>()?;
    let standalone = match words.as_slice() {
        ["serve"] => false,
        ["serve", "--standalone"] => true,
        _ => return None,
    };
    let serve = serve::ServeArgs {
        standalone,
        ..serve::ServeArgs::default()
    };
    Some(CommandLine {
        global: Global::default(),
        command: Command::Serve(serve),
    })
}

/// Returns a hint for a common mistake in a command line that clap rejects.
fn find_hint(error: &clap::Error, words: &[OsString]) -> Option<&'static str> {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) {
        return match word.as_str() {
            "start" | "stop" => {
                Some("to start or stop the daemon: `proxy daemon start`, `proxy daemon stop`")
            }
            "install" => Some("to add a server: `proxy add NAME`"),
            "apply" => Some("to add a program as a server: `proxy add NAME -- COMMAND`"),
            "mcp" => Some("use `proxy add`, `proxy servers` or `proxy remove`"),
            _ => None,
        };
    }
    if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg)
        && let Some(hint) = removed::find_option(word)
    {
        return Some(hint);
    }
    let is_add = words.iter().any(|word| word == "add");
    (is_add && error.kind() == ErrorKind::UnknownArgument)
        .then_some("write the command of a server after `--`: proxy add NAME -- npx -y PACKAGE")
}

#[cfg(test)]
mod tests;
