//! `proxy apply`: adds a server that the web page proposed, after a person has read its command.

use clap::Args;
use daemon::page::ApiRequest;
use page::Proposal;
use serde_json::json;

use super::{add::AddArgs, api::with_api};
use crate::{
    cli::global::Global,
    exit::{Exit, refuse},
    report,
    time::render_time,
};

/// Add a server that you proposed on the web page
///
/// Shows the whole command, and asks before anything is added or run. A code is valid once, for ten
/// minutes, and as long as the daemon runs.
#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    /// The code that the page shows
    #[arg(value_name = "CODE")]
    code: String,
}

impl ApplyArgs {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Exit> {
        if !report::can_ask() {
            return Err(refuse(
                "a person reads the command before it is added\nhint: type this command in a terminal",
            ));
        }
        let mut taken = None;
        let exit = with_api(global, async |api| {
            let code = printable::one_line(&self.code);
            if !code.bytes().all(|it| it.is_ascii_alphanumeric()) {
                return Err(refuse(format!("`{code}` is no code of the page")));
            }
            let request = ApiRequest::post(format!("/api/v1/proposals/{code}/take"), json!({}));
            taken = Some(api.ask::<Proposal>(request, Exit::Nothing).await?.value);
            Ok(Exit::Nothing)
        })?;
        taken.map_or(Ok(exit), |proposal| decide(global, proposal))
    }
}

fn decide(global: &Global, proposal: Proposal) -> anyhow::Result<Exit> {
    let words = proposal.command.iter();
    let words: Vec<String> = words.map(|it| printable::quote_word(it)).collect();
    report::say(&format!(
        "proposed on the web page at {}:\n  name     {}\n  command  {}",
        render_time(proposal.at),
        proposal.name,
        words.join(" ")
    ));
    if !report::confirm("Add this server, and start it to ask it for its tools? [y]es, [n]o:") {
        report::say("nothing was added; the proposal is gone");
        return Ok(Exit::Nothing);
    }
    AddArgs::of_program(proposal.name, proposal.command).run(global)
}
