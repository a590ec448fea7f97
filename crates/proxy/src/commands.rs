//! The commands: how each is started, and with which configuration.

use std::{
    ops::ControlFlow::{self, Break, Continue},
    sync::Arc,
};

use anyhow::{Context as _, bail};
use config::{Config, Environment, Overrides};
use gateway::Gateway;
use tokio_util::sync::CancellationToken;

use crate::{
    cli::{Arguments, Command, Config as ConfigCommand, Global, complete},
    exit::Exit,
    live, report,
};

mod add;
mod audit;
mod call;
mod client_program;
mod confine;
mod daemon;
mod doctor;
mod edit;
mod event_loop;
mod idle_rules;
mod import;
mod init;
mod inspect;
mod kept_state;
mod logging;
mod login;
mod manual;
mod moving;
mod policy;
mod read;
mod recipes;
mod reindex;
mod review;
mod script;
mod secret;
mod serve;
mod serve_http;
mod servers;
mod signals;
mod stats;
mod status;
mod tokens;
mod tools;
mod usage;

use event_loop::run_async;
use logging::{LOG_DEFAULT, log};

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
    match run_without_config(&global, command)? {
        Break(exit) => Ok(exit),
        Continue(command) => run_with_config(&global, command),
    }
}

/// Runs a command that reads no configuration, or only inspects the file itself; returns any other
/// command to the caller.
fn run_without_config(
    global: &Global,
    command: Command,
) -> anyhow::Result<ControlFlow<Exit, Command>> {
    Ok(Break(match command {
        Command::Config(ConfigCommand::Docs) => {
            report::print_data(&config::docs());
            Exit::Success
        }
        Command::Config(ConfigCommand::Path) => inspect::print_config_path(global),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            complete::write_registration(shell, &mut text)?;
            report::print_data(&String::from_utf8(text)?);
            Exit::Success
        }
        Command::Man { folder } => manual::print_manual(folder.as_deref())?,
        Command::Recipes { words } => recipes::print_recipes(global, &words),
        Command::Reaper => {
            processes::reap(std::io::stdin().lock());
            Exit::Success
        }
        Command::Confine(confine) => confine::become_command(confine)?,
        Command::Helper => read::work_as_helper(),
        Command::ScriptHelper => script::work_as_helper(),
        Command::DemoServer { name } => {
            run_async(demo::servers::run(&name))??;
            Exit::Success
        }
        Command::Demo => {
            log("error");
            run_async(play_demo())??
        }
        Command::Daemon(verb) => daemon::run_verb(global, &verb)?,
        Command::Init(init) => init::init(global, &init)?,
        Command::Import { from, dry_run } => import::import(global, &from, dry_run)?,
        Command::Doctor { offline } => {
            log("error");
            doctor::examine(global, offline)?
        }
        Command::Add(add) => add::add(global, add)?,
        Command::Remove {
            servers,
            keep_rules,
        } => edit::remove(global, &servers, keep_rules)?,
        Command::Enable { servers } => edit::set_enabled(global, &servers, true)?,
        Command::Disable { servers } => edit::set_enabled(global, &servers, false)?,
        Command::Rename { from, to } => edit::rename(global, &from, &to)?,
        Command::Login(login) => login::log_in_to(global, &login)?,
        Command::Logout(logout) => login::log_out_of(global, &logout)?,
        Command::Secret(action) => secret::change(global, action)?,
        Command::Status { watch } => status::print_status(global, watch)?,
        Command::Serve {
            standalone: false,
            http: None,
        } => match serve::serve_through_daemon(global)? {
            Some(exit) => exit,
            None => return Ok(Continue(command)),
        },
        Command::Serve {
            standalone: false,
            http: Some(at),
        } => match serve_http::serve_through_daemon(global, at)? {
            Some(exit) => exit,
            None => return Ok(Continue(command)),
        },
        other => return Ok(Continue(other)),
    }))
}

fn run_with_config(global: &Global, command: Command) -> anyhow::Result<Exit> {
    let config = match config::load(&global.overrides(), &Environment::of_process()) {
        Ok(config) => config,
        Err(error) => {
            if matches!(command, Command::Serve { http: None, .. }) {
                return serve::serve_without_file(global, &error);
            }
            report::say(&error.to_string());
            return Ok(Exit::Usage);
        }
    };
    // Commands other than `serve` report the failures of servers themselves; users who ask for logs, in
    // whatever way, get them.
    let is_told_anyway = !matches!(command, Command::Serve { .. }) && config.log == LOG_DEFAULT;
    log(if is_told_anyway {
        "warn,fleet=error,processes=error"
    } else {
        &config.log
    });
    if let Command::Serve { http, .. } = command {
        let load = live::loader_of(global);
        return match http {
            None => serve::serve_alone(config, load, None),
            Some(at) => serve_http::serve_alone(config, at, load),
        };
    }
    let asked = match tools::request_of(&command, global.json) {
        Ok(asked) => asked,
        Err(error) => {
            report::fail(&error);
            return Ok(Exit::Usage);
        }
    };
    if let Some(asked) = asked {
        return tools::run(config, global, asked);
    }
    run_async(async {
        match command {
            Command::Config(_) => Ok(inspect::print_config_check(&config, global.json)),
            Command::Audit(audit) => audit::print_audit(&config, global, &audit),
            Command::Stats(stats) => stats::print_stats(&config, global, &stats),
            Command::Log { server, lines } => {
                Ok(inspect::print_server_log(&config, global, &server, lines))
            }
            other => Box::pin(run_with_gateway(config, global, other)).await,
        }
    })?
}

/// Plays the demo; its configuration and state are in a folder that is deleted afterwards.
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
    let played = demo::play(&gateway, report::print_data).await;
    gateway.stop().await;
    played.map(|()| Exit::Success)
}

/// Runs commands that use the same gateway as a client does. Servers that were started are stopped.
async fn run_with_gateway(
    config: Config,
    global: &Global,
    command: Command,
) -> anyhow::Result<Exit> {
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
        Command::Servers => return Ok(servers::print_servers(gateway, global).await),
        Command::Review(asked) => return review::review(gateway, global, &asked),
        Command::History(asked) => return Ok(review::print_history(gateway, global, &asked)),
        Command::Usage { action: None } => return Ok(usage::print_usage(gateway, global)),
        Command::Usage { .. } => return usage::reset(gateway),
        _ => {}
    }
    tools::say_never_asked(gateway);
    gateway.survey_new().await;
    match command {
        Command::Policy(action) => policy::look(gateway, global, action).await,
        Command::Allow(asked) => policy::allow(gateway, global, &asked).await,
        Command::Categories => usage::print_categories(gateway, global).await,
        Command::Tokens { by_tool } => tokens::count_tokens(gateway, global, by_tool).await,
        other => bail!("{other:?} has no gateway to ask"),
    }
}
