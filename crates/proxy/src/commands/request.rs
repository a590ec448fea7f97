//! Requests of commands to a gateway: to the daemon's, if a daemon runs or can be started; else to one
//! in this process.

use std::sync::Arc;

use anyhow::Context as _;
use daemon::shell::run_in_daemon;
use gateway::{
    Connection, Gateway,
    shell::{ShellReply, ShellRequest, Verb},
};
use tokio_util::sync::CancellationToken;

use super::{
    report_first_survey,
    route::{explain, find_route},
    with_config,
};
use crate::{
    cli::global::Global, event_loop::run_async, exit::Exit, node::open_gateway, report,
    signals::watch_signals,
};

pub(super) fn run(global: &Global, verb: Verb, is_standalone: bool) -> anyhow::Result<Exit> {
    let json = global.json;
    run_with(
        global,
        ShellRequest { verb, json },
        is_standalone,
        |reply| Ok(print(&reply)),
    )
}

/// Sends the request, and passes the reply to `show`.
pub(super) fn run_with(
    global: &Global,
    request: ShellRequest,
    is_standalone: bool,
    show: impl FnOnce(ShellReply) -> anyhow::Result<Exit>,
) -> anyhow::Result<Exit> {
    with_config(global, |config| {
        let reply = run_async(async {
            let stop = CancellationToken::new();
            watch_signals(&stop)?;
            if !is_standalone {
                let asked = stop.run_until_cancelled(ask_daemon(global, &request));
                if let Some(reply) = asked.await.context("interrupted")? {
                    return Ok(reply);
                }
            }
            let (gateway, _) = open_gateway(&config, false)?;
            let reply = ask_own(&gateway, request, stop.child_token());
            let reply = stop.run_until_cancelled(Box::pin(reply)).await;
            gateway.stop().await;
            reply.context("interrupted")
        })??;
        show(reply)
    })
}

/// Sends the request to the daemon. `None` if there is no daemon; the reason has been printed.
async fn ask_daemon(global: &Global, request: &ShellRequest) -> Option<ShellReply> {
    let route = match find_route(global) {
        Ok(Ok(route)) => route,
        Ok(Err(error)) => {
            report::say(&format!("without the daemon: {error}"));
            return None;
        }
        Err(error) => {
            report::say(&error.to_string());
            return None;
        }
    };
    match run_in_daemon(&route, request.clone()).await {
        Ok(Some(reply)) => Some(reply),
        // A call may have run: it is not repeated.
        Ok(None) => Some(ShellReply {
            told: "error: the daemon ended before it replied; the request may have run\n\
                   hint: `proxy logs` prints the end of its log"
                .to_owned(),
            ..ShellReply::default()
        }),
        Err(why) => {
            let why = report::describe(&explain(why));
            report::say(&format!("without the daemon: {why}"));
            None
        }
    }
}

async fn ask_own(
    gateway: &Arc<Gateway>,
    request: ShellRequest,
    gone: CancellationToken,
) -> ShellReply {
    report_first_survey(gateway);
    let connection = Connection {
        cwd: std::env::current_dir().ok().map(Into::into),
        transport: "shell",
        ..Connection::default()
    };
    gateway.run_shell(connection, request, gone).await
}

pub(super) fn print(reply: &ShellReply) -> Exit {
    if !reply.data.is_empty() {
        report::print_data(&reply.data);
    }
    if !reply.told.is_empty() {
        report::say(&reply.told);
    }
    Exit::of_hit(reply.is_hit)
}
