//! Commands that use a gateway: `search`, `describe`, `call`, `list`. They use that of the daemon if
//! there is one or it can be started; else one in this process.

use std::{path::PathBuf, sync::Arc};

use config::Config;
use daemon::{
    reach::NoDaemon,
    shell::{Outcome, run_in_daemon},
};
use gateway::{
    Connection, Gateway,
    shell::{ShellReply, ShellRequest, Verb},
};
use tokio_util::sync::CancellationToken;
use tool::ServerName;

use super::{
    call::read_call, event_loop::run_async, script, serve::find_route, signals::watch_signals,
    status::ask_daemons,
};
use crate::{
    cli::{Call, Command, Global, Search},
    exit::Exit,
    report,
    table::wrap,
};

/// A request to a gateway.
pub(super) struct Asked {
    request: ShellRequest,
    /// Only this process may answer.
    is_standalone: bool,
    /// The folder into which declarations are written.
    into: Option<PathBuf>,
}

/// Returns the request of a command; `None` for a command that asks no gateway.
pub(super) fn request_of(command: &Command, json: bool) -> anyhow::Result<Option<Asked>> {
    let mut into = None;
    let (verb, is_standalone) = match command {
        Command::Search(search) => (search_of(search), search.standalone),
        Command::Describe { names, standalone } => {
            let names = names.clone();
            (Verb::Describe { names }, *standalone)
        }
        Command::Call(call @ Call { standalone, .. }) => {
            (Verb::Call(read_call(call)?), *standalone)
        }
        Command::Run(run) => (Verb::Call(script::read_run(run)?), run.standalone),
        Command::Types(types) => {
            into.clone_from(&types.into);
            (Verb::Types(types.server.clone()), types.standalone)
        }
        Command::Restart { servers } => (Verb::Restart(servers.clone()), false),
        Command::List { of, standalone } => (Verb::List(of.clone()), *standalone),
        _ => return Ok(None),
    };
    let json = json || into.is_some();
    Ok(Some(Asked {
        request: ShellRequest { verb, json },
        is_standalone,
        into,
    }))
}

fn search_of(search: &Search) -> Verb {
    let category = search.category.as_ref().map(|name| name.trim().to_owned());
    Verb::Search {
        words: search.query.join(" ").trim().to_owned(),
        category: category.filter(|name| !name.is_empty()),
        tags: search.tags.clone(),
        limit: search.max_results,
        offset: search.offset,
        why: search.why,
    }
}

/// Sends the request, and prints the answer. `config` is known to be valid.
pub(super) fn run(config: Config, global: &Global, asked: Asked) -> anyhow::Result<Exit> {
    let Asked {
        request,
        is_standalone,
        into,
    } = asked;
    let is_list = matches!(request.verb, Verb::List(_)) && !request.json;
    let print = |mut reply: ShellReply| match &into {
        Some(folder) => script::write_types(&reply, folder),
        None => {
            if is_list {
                reply.data = wrap(&reply.data, 4);
            }
            Ok(print(&reply))
        }
    };
    run_async(async {
        let stop = CancellationToken::new();
        watch_signals(&stop)?;
        // A daemon started for this command would have no server to restart.
        if matches!(request.verb, Verb::Restart(_)) && !runs(global).await {
            report::say("no daemon runs, and so none of its servers; the next call starts them");
            return Ok(Exit::Success);
        }
        if !is_standalone {
            let asked = ask_daemon(global, &request);
            match stop.run_until_cancelled(asked).await {
                None => anyhow::bail!("interrupted"),
                Some(Some(reply)) => return print(reply),
                Some(None) => {}
            }
        }
        let gateway = Gateway::new(config.gateway)?;
        let reply = ask_own(&gateway, request, stop.child_token());
        let reply = stop.run_until_cancelled(Box::pin(reply)).await;
        gateway.stop().await;
        match reply {
            Some(reply) => print(reply),
            None => anyhow::bail!("interrupted"),
        }
    })?
}

async fn runs(global: &Global) -> bool {
    let Ok(Ok(route)) = find_route(global) else {
        return false;
    };
    let daemons = ask_daemons(&route).await;
    daemons.is_ok_and(|daemons| !daemons.is_empty())
}

/// Sends the request to the daemon. `None`: there is no daemon, which has been reported.
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
        Ok(Outcome::Answered(reply)) => Some(reply),
        // A call may have run: it is not repeated.
        Ok(Outcome::Lost) => Some(ShellReply {
            told: "error: the daemon ended before it answered; what was asked may have been done\n\
                   hint: `proxy daemon logs` has its last words"
                .to_owned(),
            ..ShellReply::default()
        }),
        Err(NoDaemon::Said(why)) => {
            report::say(&format!("without the daemon: {}", why.text));
            None
        }
        Err(NoDaemon::Failed(error)) => {
            report::say(&format!("without the daemon: {}", report::describe(&error)));
            None
        }
    }
}

async fn ask_own(
    gateway: &Arc<Gateway>,
    request: ShellRequest,
    gone: CancellationToken,
) -> ShellReply {
    say_never_asked(gateway);
    let connection = Connection {
        cwd: std::env::current_dir().ok(),
        transport: "shell",
        ..Connection::default()
    };
    gateway.run_shell(connection, request, gone).await
}

/// Prints the servers that are still being waited for.
pub(super) fn say_never_asked(gateway: &Gateway) {
    let new = gateway.never_asked();
    if !new.is_empty() {
        let names: Vec<&str> = new.iter().map(ServerName::as_str).collect();
        let names = names.join(", ");
        report::say(&format!(
            "asking for their tools for the first time: {names}"
        ));
    }
}

fn print(reply: &ShellReply) -> Exit {
    if !reply.data.is_empty() {
        report::print_data(&reply.data);
    }
    if !reply.told.is_empty() {
        report::say(&reply.told);
    }
    if reply.is_hit {
        Exit::Success
    } else {
        Exit::Nothing
    }
}
