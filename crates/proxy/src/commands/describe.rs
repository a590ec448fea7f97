//! `proxy describe`.

use clap::Args;
use clap_complete::ArgValueCompleter;
use gateway::shell::Verb;

use super::request;
use crate::{
    cli::{complete::complete_tools, global::Global},
    exit::Exit,
};

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
        let verb = Verb::Describe { names: self.names };
        request::run(global, verb, self.standalone)
    }
}
