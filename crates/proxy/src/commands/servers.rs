//! `proxy servers`: lists servers, and changes or restarts them.

use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;
use gateway::api::{ApiReply, ApiRequest, Restarted};
use serde_json::json;

use super::{
    api::{Daemon, explain_reply, with_api},
    route::{find_route, read_status},
    with_surveyed_gateway,
};
use crate::{
    cli::{complete::complete_servers, global::Global},
    event_loop::run_async,
    exit::Exit,
    report,
};

mod change;
mod server_state;
mod table;
mod tokens;

const EXAMPLES: &str = "\
Examples:
  proxy servers
  proxy servers --tokens             the tokens that your clients save
  proxy servers --tokens --price 3   and their price, at $3 per million tokens
  proxy servers disable github
  proxy servers rename github gh
  proxy servers restart github";

/// List servers; enable, disable, rename or restart them
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
pub(crate) struct ServersArgs {
    #[command(subcommand)]
    action: Option<ServersAction>,
    /// Compare the tokens of all definitions with the tokens of the three tools
    #[arg(long)]
    tokens: bool,
    /// With --tokens: print the tokens of each tool, the largest first
    #[arg(long, requires = "tokens")]
    by_tool: bool,
    /// With --tokens: print the price too, at this many dollars per million input tokens
    #[arg(
        long,
        value_name = "DOLLARS",
        requires = "tokens",
        conflicts_with = "by_tool"
    )]
    #[arg(value_parser = parse_price)]
    price: Option<f64>,
}

fn parse_price(text: &str) -> Result<f64, String> {
    let price = text.parse().ok();
    let price = price.filter(|price: &f64| price.is_finite() && *price >= 0.0);
    price.ok_or_else(|| "write dollars per million tokens, such as 3 or 0.25".to_owned())
}

#[derive(Debug, Subcommand)]
enum ServersAction {
    /// Enable servers
    Enable(ServerNames),
    /// Disable servers; their tables stay in the configuration
    Disable(ServerNames),
    /// Rename a server, with its rules, accepted tools, logins and history
    Rename {
        /// Server of the configuration
        #[arg(value_name = "SERVER", add = ArgValueCompleter::new(complete_servers))]
        from: String,
        /// New name: lower-case letters, digits and `-`
        #[arg(value_name = "NAME")]
        to: String,
    },
    /// Restart servers of the daemon now, and print when they are ready
    Restart {
        #[command(flatten)]
        names: ServerNames,
        /// Let running calls finish before the servers end
        #[arg(long)]
        wait: bool,
    },
}

#[derive(Debug, Args)]
struct ServerNames {
    /// Servers of the configuration
    #[arg(required = true, value_name = "SERVER", add = ArgValueCompleter::new(complete_servers))]
    servers: Vec<String>,
}

impl ServersArgs {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Exit> {
        match self.action {
            Some(ServersAction::Enable(names)) => change::set_enabled(global, &names.servers, true),
            Some(ServersAction::Disable(names)) => {
                change::set_enabled(global, &names.servers, false)
            }
            Some(ServersAction::Rename { from, to }) => change::rename(global, &from, &to),
            Some(ServersAction::Restart { names, wait }) => restart(global, names.servers, wait),
            None if self.tokens => with_surveyed_gateway(global, async |gateway| {
                tokens::print_tokens(gateway, global.json, self.by_tool, self.price).await
            }),
            None => with_api(global, Daemon::Running, async |api| {
                table::print_servers(api, global).await
            }),
        }
    }
}

fn restart(global: &Global, servers: Vec<String>, waits: bool) -> anyhow::Result<Exit> {
    // A daemon started for this command would have no server to restart.
    let is_running = match find_route(global) {
        Ok(Ok(route)) => !run_async(read_status(&route))?.is_empty(),
        _ => false,
    };
    if !is_running {
        report::say("no daemon is running, so no server is; the next call starts them");
        return Ok(Exit::Success);
    }
    with_api(global, Daemon::Started, async |api| {
        let request = ApiRequest::Restart { servers, waits };
        let reply = api.ask(request, Exit::Nothing).await?;
        let ApiReply::Restarted(outcomes) = reply else {
            return Err(explain_reply(&reply));
        };
        if global.json {
            report::print_json(&json!(outcomes));
        } else {
            for outcome in &outcomes {
                report::say(&text_of(outcome));
            }
        }
        Ok(Exit::of_hit(outcomes.iter().all(|it| it.error.is_none())))
    })
}

fn text_of(restarted: &Restarted) -> String {
    match (&restarted.error, &restarted.next_step) {
        (Some(why), Some(next)) => format!("error: {why}\nhint: {next}"),
        _ => {
            let ms = restarted.ready_ms.unwrap_or_default();
            format!("{}: ready in {ms} ms", restarted.server)
        }
    }
}
