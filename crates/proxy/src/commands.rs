//! What each command does.

use std::{sync::Arc, time::Duration};

use ::daemon::log::LogWriter;
use anyhow::{Context as _, bail};
use config::{Config, Environment, Overrides};
use gateway::{CallContext, Gateway, survey};
use serde_json::{Value, value::RawValue};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use crate::{
    cli::{Arguments, Command, Config as ConfigCommand, Exit, Global},
    live, report,
};

mod call;
mod daemon;
mod inspect;
mod look;
mod read;
mod reindex;
mod serve;
mod serve_http;
mod signals;
mod status;
mod tokens;
mod usage;

pub(crate) fn run(arguments: Arguments) -> Exit {
    match dispatch(arguments) {
        Ok(exit) => exit,
        Err(error) => {
            report::fail(&error);
            Exit::Nothing
        }
    }
}

fn dispatch(Arguments { global, command }: Arguments) -> anyhow::Result<Exit> {
    match command {
        Command::Config(ConfigCommand::Docs) => {
            report::data(&config::docs());
            return Ok(Exit::Success);
        }
        Command::Config(ConfigCommand::Path) => return Ok(inspect::config_path(&global)),
        Command::Reaper => {
            processes::reap(std::io::stdin().lock());
            return Ok(Exit::Success);
        }
        Command::Helper => return Ok(read::work_as_helper()),
        Command::DemoServer { name } => {
            run_async(demo::servers::run(&name))??;
            return Ok(Exit::Success);
        }
        Command::Demo => {
            log("error");
            return run_async(play_demo())?;
        }
        Command::Daemon(verb) => return daemon::daemon(&global, &verb),
        Command::Status { watch } => return status::status(&global, watch),
        Command::Serve {
            standalone: false,
            http: None,
        } => {
            if let Some(exit) = serve::through_daemon(&global)? {
                return Ok(exit);
            }
        }
        _ => {}
    }
    let config = match config::load(&global.overrides(), &Environment::of_process()) {
        Ok(config) => config,
        Err(error) => {
            report::say(&error.to_string());
            return Ok(Exit::Usage);
        }
    };
    // Commands other than `serve` say themselves what a server failed of; whoever asks for logs,
    // in whatever way, gets them.
    let is_told_anyway = !matches!(command, Command::Serve { .. }) && config.log == LOG_DEFAULT;
    log(if is_told_anyway {
        "warn,fleet=error,processes=error"
    } else {
        &config.log
    });
    if let Command::Serve { http, .. } = command {
        let load = live::load_of(&global);
        return match http {
            None => serve::standalone(config, load),
            Some(at) => serve_http::serve(config, at, load),
        };
    }
    run_async(async {
        match command {
            Command::Config(_) => Ok(inspect::config_check(&config, global.json)),
            Command::Log { server, lines } => {
                Ok(inspect::server_log(&config, &global, &server, lines))
            }
            other => Box::pin(with_front(config, &global, other)).await,
        }
    })?
}

/// Plays the demo; its configuration and state live in a folder that is gone afterwards.
async fn play_demo() -> anyhow::Result<Exit> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let file = folder.path().join("config.toml");
    std::fs::write(&file, demo::configuration()?)?;
    let overrides = Overrides {
        config: Some(file),
        state_dir: Some(folder.path().join("state")),
        log: None,
    };
    let env: Environment = std::iter::empty::<(String, String)>().collect();
    let gateway = Gateway::new(config::load(&overrides, &env)?.gateway)?;
    let played = demo::play(&gateway, report::data).await;
    gateway.stop().await;
    played.map(|()| Exit::Success)
}

/// The filter of a configuration that asks for nothing; the table of keys has the same.
const LOG_DEFAULT: &str = "warn";

/// How long threads that block may go on when everything else has ended. Whatever must not be
/// lost was waited for before; what is left, nobody waits for.
const THREADS_END_WAIT: Duration = Duration::from_millis(500);

/// Runs to its end what needs an event loop.
fn run_async<T>(work: impl Future<Output = T>) -> anyhow::Result<T> {
    let runtime = runtime()?;
    let done = runtime.block_on(work);
    // A runtime that is dropped waits for every such thread, for however long.
    runtime.shutdown_timeout(THREADS_END_WAIT);
    Ok(done)
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores.min(4))
        .enable_all()
        .build()
        .context("cannot start the event loop")
}

/// Logs go to stderr, always: stdout is data, or the protocol. A line that cannot be written is
/// lost; to say so (`log_internal_errors`) there is only stderr again, which panics then.
fn log(filter: &str) {
    let has_colour = std::env::var_os("NO_COLOR").is_none()
        && std::io::IsTerminal::is_terminal(&std::io::stderr());
    let _ = tracing_subscriber::fmt()
        .with_env_filter(engine_quiet(filter))
        .with_writer(std::io::stderr)
        .log_internal_errors(false)
        .with_ansi(has_colour)
        .try_init();
}

/// The log of a daemon, which has nobody's stderr.
fn log_to(filter: &str, log: LogWriter) {
    let _ = tracing_subscriber::fmt()
        .with_env_filter(engine_quiet(filter))
        .with_writer(log)
        .log_internal_errors(false)
        .with_ansi(false)
        .try_init();
}

/// The protocol engine logs whole messages, and so secrets; it speaks only when asked to.
fn engine_quiet(filter: &str) -> EnvFilter {
    let quiet = if filter.contains("rmcp") {
        ""
    } else {
        ",rmcp=off"
    };
    let filter = EnvFilter::try_new(format!("{filter}{quiet}"));
    filter.unwrap_or_else(|_| EnvFilter::new("warn,rmcp=off"))
}

/// Commands that ask the same gateway as a client does. Servers that were started are ended.
async fn with_front(config: Config, global: &Global, command: Command) -> anyhow::Result<Exit> {
    let gateway = Gateway::new(config.gateway)?;
    let stop = CancellationToken::new();
    signals::watch_signals(&stop)?;
    let done = stop
        .run_until_cancelled(Box::pin(ask(&gateway, global, command)))
        .await;
    gateway.stop().await;
    done.unwrap_or_else(|| bail!("interrupted"))
}

async fn ask(gateway: &Arc<Gateway>, global: &Global, command: Command) -> anyhow::Result<Exit> {
    if let Command::Reindex { servers } = command {
        return reindex::reindex(gateway, global, &servers).await;
    }
    if let Command::Read(read) = command {
        return read::read(gateway, global, read).await;
    }
    match command {
        Command::Usage { action: None } => return Ok(usage::usage(gateway, global)),
        Command::Usage { .. } => return usage::reset(gateway),
        _ => {}
    }
    get_to_know(gateway).await;
    match command {
        Command::Search(search) => look::search(gateway, global, search).await,
        Command::Describe { names } => look::describe(gateway, global, &names).await,
        Command::Call(call) => call::call(gateway, global, call).await,
        Command::List { of } => look::list(gateway, global, of.as_deref()).await,
        Command::Categories => usage::categories(gateway, global).await,
        Command::Tokens { by_tool } => tokens::count_tokens(gateway, global, by_tool).await,
        other => bail!("{other:?} has no gateway to ask"),
    }
}

/// Servers that were never asked for their tools are asked now. One that failed before is left
/// to `reindex`: a search does not wait for it again.
async fn get_to_know(gateway: &Arc<Gateway>) {
    let catalog = gateway.registry.catalog();
    let servers = catalog.servers.iter();
    let new = servers.filter(|it| it.surveyed_at.is_none() && it.stale.is_none());
    let new: Vec<_> = new.map(|server| server.name.clone()).collect();
    if !new.is_empty() {
        let names: Vec<&str> = new.iter().map(tool::ServerName::as_str).collect();
        let names = names.join(", ");
        report::say(&format!(
            "asking for their tools for the first time: {names}"
        ));
        survey::get_to_know(Arc::clone(gateway), new).await;
    }
}

async fn ask_tool(
    gateway: &Gateway,
    name: &str,
    arguments: &Value,
) -> anyhow::Result<gateway::Reply> {
    let arguments = RawValue::from_string(arguments.to_string())?;
    let reply = gateway
        .call_tool(name, Some(&arguments), CallContext::default())
        .await;
    reply.context("one of our own tools is missing")
}

/// Success goes to stdout; an error is for people.
fn print_reply(reply: &gateway::Reply) -> Exit {
    if reply.is_error() {
        report::say(&reply.printable());
        return Exit::Nothing;
    }
    report::data(&reply.printable());
    Exit::Success
}
