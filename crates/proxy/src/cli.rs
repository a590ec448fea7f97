//! The command line: the list of commands, and the dispatch to them.

use std::ffi::OsString;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use self::global::Global;
use crate::{
    commands::{
        self, add, audit, call, cluster, config, confine, daemon, demo, describe, doctor, enrich,
        generate, import, init, list, lock, log, login, logout, policy, read, recipes, reindex,
        remove, review, run, search, secret, serve, servers, stats, status, web,
    },
    exit::Exit,
    report,
};

pub(crate) mod complete;
pub(crate) mod global;
mod groups;
mod removed;

const EXAMPLES: &str = "\
Examples:
  proxy demo                           play a session, without any configuration
  proxy init                           import your clients' servers
  proxy reindex                        ask every server for its tools
  proxy search create a github issue   list the tools that match
  proxy describe github/create_issue   show the schema of a tool
  proxy call github/create_issue owner=acme repo=site title='Broken link'
  proxy servers --tokens               show the tokens that your clients save
  claude mcp add proxy -- tool-proxy serve
                                       add proxy to Claude Code

Exit codes: 0 success, 1 nothing found or a tool error, 2 wrong usage or configuration,
            3 (reindex, init, login, lock) some failed,
            10 to 12 (verify) see `proxy verify --help`";

/// One MCP server that stands in for all of your MCP servers.
#[derive(Debug, Parser)]
#[command(name = "proxy", version, after_help = EXAMPLES, arg_required_else_help = true)]
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
    Import(import::ImportArgs),
    Recipes(recipes::RecipesArgs),
    Add(add::AddArgs),
    Remove(remove::RemoveArgs),
    Servers(servers::ServersArgs),
    Log(log::LogArgs),
    Login(login::LoginArgs),
    Logout(logout::LogoutArgs),
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
    Read(read::ReadArgs),
    List(list::ListArgs),
    Review(review::ReviewArgs),
    Lock(lock::LockArgs),
    Verify(lock::VerifyArgs),
    #[command(subcommand)]
    Policy(policy::PolicyAction),
    Audit(audit::AuditArgs),
    Reindex(reindex::ReindexArgs),
    Enrich(enrich::EnrichArgs),
    Stats(stats::StatsArgs),
    Doctor(doctor::DoctorArgs),
    /// Play a session with built-in servers
    Demo,
    #[command(subcommand)]
    Config(config::ConfigAction),
    #[command(subcommand)]
    Generate(generate::GenerateAction),
    /// Ends the servers of a proxy that died (started by every proxy that has servers)
    #[command(hide = true)]
    Reaper,
    /// Searches a stored result (started by `read` and by `proxy/read_result`)
    #[command(hide = true)]
    Helper,
    /// Runs one script (started by `run` and by `proxy/run_script`)
    #[command(hide = true)]
    ScriptHelper,
    #[command(hide = true)]
    Confine(confine::ConfineArgs),
    /// Runs one of the demo's servers (started by `demo`)
    #[command(hide = true)]
    DemoServer {
        name: String,
    },
}

impl Command {
    fn run(self, global: &Global) -> anyhow::Result<Exit> {
        match self {
            Self::Init(args) => args.run(global),
            Self::Import(args) => args.run(global),
            Self::Recipes(args) => args.run(global),
            Self::Add(args) => args.run(global),
            Self::Remove(args) => args.run(global),
            Self::Servers(args) => args.run(global),
            Self::Log(args) => args.run(global),
            Self::Login(args) => args.run(global),
            Self::Logout(args) => args.run(global),
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
            Self::Read(args) => args.run(global),
            Self::List(args) => args.run(global),
            Self::Review(args) => args.run(global),
            Self::Lock(args) => args.run(global),
            Self::Verify(args) => args.run(global),
            Self::Policy(action) => action.run(global),
            Self::Audit(args) => args.run(global),
            Self::Reindex(args) => args.run(global),
            Self::Enrich(args) => args.run(global),
            Self::Stats(args) => args.run(global),
            Self::Doctor(args) => args.run(global),
            Self::Demo => demo::play(),
            Self::Config(action) => action.run(global),
            Self::Generate(action) => {
                let command = CommandLine::command().name(complete::program_name());
                action.run(global, command)
            }
            Self::Reaper => {
                processes::reap(std::io::BufReader::new(std::io::stdin()));
                Ok(Exit::Success)
            }
            Self::Helper => Ok(commands::read::work_as_helper()),
            Self::ScriptHelper => Ok(commands::run::work_as_helper()),
            Self::Confine(args) => args.become_command(),
            Self::DemoServer { name } => demo::serve(&name),
        }
    }
}

/// Parses the command line and runs the command. Help, mistakes and errors are printed.
pub(crate) fn run(words: impl IntoIterator<Item = OsString>) -> Exit {
    let CommandLine { global, command } = match parse(words) {
        Ok(parsed) => parsed,
        Err(exit) => return exit,
    };
    let ended = command.run(&global);
    ended.unwrap_or_else(|error| report::fail(&error))
}

/// The command line as clap knows it, with its commands grouped by task.
pub(crate) fn command() -> clap::Command {
    let command = CommandLine::command();
    let groups = groups::render(&command);
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}\nOptions:\n{{options}}{{after-help}}"
    ))
}

/// Returns the parsed command line; or the exit code, after help, the version or an error was printed.
fn parse(words: impl IntoIterator<Item = OsString>) -> Result<CommandLine, Exit> {
    let words: Vec<OsString> = words.into_iter().collect();
    if let Some(parsed) = parse_serve(&words) {
        return Ok(parsed);
    }
    let matches = command().try_get_matches_from(&words);
    let parsed = matches.and_then(|matches| CommandLine::from_arg_matches(&matches));
    parsed.map_err(|error| {
        if let Some(why) = removed::explain_command(&error, &words) {
            report::say(&why);
            return Exit::Usage;
        }
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
