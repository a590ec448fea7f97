//! `proxy web`: opens the web page of the daemon.

use anyhow::bail;
use clap::Args;
use daemon::{
    hello::{DaemonReply, Purpose},
    reach::{NoDaemon, reach},
};
use oauth::{can_open_browser, open_browser};
use serde_json::json;

use super::route::{explain, need_route};
use crate::{cli::global::Global, event_loop::run_async, exit::Exit, report};

/// Open the web page of the daemon
///
/// Starts the daemon if none runs. The address is valid once, for a minute, and on this machine only;
/// the page then stays open as long as the daemon runs.
#[derive(Debug, Args)]
pub(crate) struct WebArgs {
    /// Print the address instead of opening a browser
    #[arg(long)]
    no_browser: bool,
}

impl WebArgs {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Exit> {
        let route = need_route(global)?;
        let reached = run_async(reach(&route, &Purpose::Page))?;
        match reached.map_err(explain)?.answer {
            DaemonReply::Page { url } => self.open(global, &url),
            DaemonReply::Refused(report) => Err(explain(NoDaemon::Reported(report))),
            answer => bail!("the daemon answered with {answer:?}"),
        }
    }

    fn open(&self, global: &Global, url: &str) -> anyhow::Result<Exit> {
        if global.json {
            report::print_json(&json!({"url": url}));
            return Ok(Exit::Success);
        }
        let variable = |name: &str| std::env::var_os(name);
        if !self.no_browser && can_open_browser(variable) {
            let (page, _) = url.split_once('#').unwrap_or((url, ""));
            match open_browser(&url.parse()?, variable("BROWSER")) {
                Ok(()) => {
                    report::say(&format!("opened {page} in the browser"));
                    return Ok(Exit::Success);
                }
                Err(error) => report::say(&format!("no browser could be started: {error}")),
            }
        }
        report::print_data(url);
        report::say("open this address on this machine within a minute; it is valid once");
        Ok(Exit::Success)
    }
}
