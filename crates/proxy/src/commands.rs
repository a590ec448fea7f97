//! The commands: a module for each, with its arguments and its `run`; and what they share.

use std::sync::Arc;

use ::config::Config;
use gateway::Gateway;
use tool::ServerName;

use crate::{
    cli::global::Global,
    event_loop::run_async,
    exit::Exit,
    logging::{LOG_DEFAULT, start_log},
    node::open_gateway,
    report,
    signals::until_signal,
};

pub(crate) mod add;
mod api;
pub(crate) mod audit;
pub(crate) mod call;
mod caller;
mod client_program;
pub(crate) mod cluster;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod confine;
pub(crate) mod daemon;
pub(crate) mod demo;
pub(crate) mod describe;
mod difference;
pub(crate) mod doctor;
mod edit;
pub(crate) mod enrich;
pub(crate) mod generate;
mod idle_rules;
mod import;
pub(crate) mod init;
mod lock;
pub(crate) mod login;
pub(crate) mod logs;
mod moving;
mod pending;
pub(crate) mod policy;
mod recipes;
pub(crate) mod reindex;
pub(crate) mod remove;
pub(crate) mod review;
mod route;
pub(crate) mod run;
pub(crate) mod search;
pub(crate) mod secret;
pub(crate) mod serve;
pub(crate) mod servers;
pub(crate) mod stats;
pub(crate) mod status;
pub(crate) mod web;

/// Loads the configuration. Its mistakes are the error of the command.
fn load_config(global: &Global) -> anyhow::Result<Config> {
    let config = global.load();
    config.map_err(|error| Exit::Usage.with(error.to_string()))
}

fn with_config(
    global: &Global,
    act: impl FnOnce(Config) -> anyhow::Result<Exit>,
) -> anyhow::Result<Exit> {
    let config = load_config(global)?;
    // Commands report the failures of servers themselves; a configured filter is obeyed.
    start_log(match config.log.as_str() {
        LOG_DEFAULT => "warn,fleet=error,processes=error",
        configured => configured,
    });
    act(config)
}

/// Runs a command on a gateway of this process. Servers that it started are stopped.
fn with_gateway(
    global: &Global,
    act: impl AsyncFnOnce(&Arc<Gateway>) -> anyhow::Result<Exit>,
) -> anyhow::Result<Exit> {
    with_config(global, |config| {
        run_async(async {
            let (gateway, _) = open_gateway(&config, false)?;
            let done = until_signal(act(&gateway)).await;
            gateway.stop().await;
            done
        })?
    })
}

/// The same, after servers that never listed their tools were asked for them.
fn with_surveyed_gateway(
    global: &Global,
    act: impl AsyncFnOnce(&Arc<Gateway>) -> anyhow::Result<Exit>,
) -> anyhow::Result<Exit> {
    with_gateway(global, async |gateway| {
        report_first_survey(gateway);
        gateway.survey_new().await;
        act(gateway).await
    })
}

/// Prints the servers that have never listed their tools, and are asked for them now.
fn report_first_survey(gateway: &Gateway) {
    let new = gateway.never_asked();
    if !new.is_empty() {
        let names: Vec<&str> = new.iter().map(ServerName::as_str).collect();
        let names = names.join(", ");
        report::say(&format!(
            "asking for their tools for the first time: {names}"
        ));
    }
}
