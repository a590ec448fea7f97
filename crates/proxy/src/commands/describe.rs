//! `proxy describe`.

use clap::Args;
use clap_complete::ArgValueCompleter;
use gateway::api::{ApiReply, ApiRequest, Description};
use serde_json::Value;

use super::{
    api::{Daemon, explain_reply, with_api},
    search::print_list,
};
use crate::{
    cli::{complete::complete_tools, global::Global},
    exit::Exit,
    report,
};

mod page;

const EXAMPLES: &str = "\
Examples:
  proxy describe github/create_issue
  proxy describe create_issue --json | jq .input_schema";

/// Show the schema, notes and an example of tools
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DescribeArgs {
    /// Tools: `SERVER/TOOL`, or a name that only one server has; a server's name lists its tools
    #[arg(required = true, value_name = "NAME", add = ArgValueCompleter::new(complete_tools))]
    names: Vec<String>,
    /// Run in this process, without the daemon
    #[arg(long)]
    standalone: bool,
}

impl DescribeArgs {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Exit> {
        with_api(global, Daemon::unless(self.standalone), async |api| {
            api.survey().await?;
            let request = ApiRequest::Describe(self.names);
            match api.ask(request, Exit::Nothing).await? {
                ApiReply::Description(Description::Server(tools)) => {
                    Ok(print_list(global, &tools, None))
                }
                ApiReply::Description(Description::Tools(tools)) => {
                    if global.json {
                        let tools = tools.into_iter().map(|it| it.description);
                        let mut tools: Vec<Value> = tools.collect();
                        let is_one = tools.len() == 1;
                        report::print_json(&if is_one {
                            tools.remove(0)
                        } else {
                            tools.into()
                        });
                    } else {
                        let pages: Vec<String> = tools.iter().map(page::render).collect();
                        report::print_data(&pages.join("\n\n"));
                    }
                    Ok(Exit::Success)
                }
                reply => Err(explain_reply(&reply)),
            }
        })
    }
}
