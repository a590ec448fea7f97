//! `proxy policy`: tests a call against the rules, and adds a rule that allows a tool.

use ::policy::NotAllowable;
use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;
use config::{Environment, edit::EditError};
use gateway::{
    Gateway, Thing,
    api::{ApiReply, ApiRequest, JsonObject, TestedCall},
};
use serde_json::json;

use super::{
    api::{Api, Daemon, explain_reply, with_api},
    call::read_arguments,
    edit, with_surveyed_gateway,
};
use crate::{
    cli::{complete::complete_tools, global::Global},
    exit::{Exit, refuse},
    report,
    table::wrap,
};

const ALLOW_EXAMPLES: &str = "\
Examples:
  proxy policy allow files/write_file
  proxy policy allow files/write_file --client cursor
  proxy policy allow --resource files/file:///etc/hosts";

const TEST_EXAMPLES: &str = "\
Examples:
  proxy policy test files/write_file path=/etc/hosts
  proxy policy test postgres/query '{\"sql\":\"drop table t\"}' --client cursor

Exit codes: 0 allowed, 1 a person would be asked, or refused";

/// Test a call against the rules, or allow a tool
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyAction {
    /// Allow a tool permanently, by a rule of its own
    ///
    /// The rule is added directly before the rule that restricts the tool. Without `--client` it
    /// applies to every client, and rules for certain clients stay before it. If a rule depends on
    /// arguments, edit the configuration instead.
    #[command(after_help = ALLOW_EXAMPLES)]
    Allow(AllowArgs),
    /// Print the decision of the rules for a call, without making the call
    #[command(after_help = TEST_EXAMPLES)]
    Test(TestArgs),
}

#[derive(Debug, Args)]
pub(crate) struct AllowArgs {
    /// `SERVER/TOOL`; with an option `SERVER/PROMPT` or `SERVER/URI`
    #[arg(value_name = "NAME", add = ArgValueCompleter::new(complete_tools))]
    name: String,
    /// The name is a prompt
    #[arg(long, conflicts_with = "resource")]
    prompt: bool,
    /// The name is a resource
    #[arg(long)]
    resource: bool,
    /// Only for the client with this name
    #[arg(long, value_name = "CLIENT")]
    client: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// Tool: `SERVER/TOOL`, or a name that only one server has
    #[arg(add = ArgValueCompleter::new(complete_tools))]
    name: String,
    /// One JSON object, `@FILE` to read it from a file, `-` to read it from stdin, or KEY=VALUE pairs
    #[arg(value_name = "ARGUMENTS")]
    arguments: Vec<String>,
    /// Test as the client with this name
    #[arg(long, value_name = "CLIENT")]
    client: Option<String>,
}

impl PolicyAction {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Exit> {
        match &self {
            Self::Allow(args) => {
                with_surveyed_gateway(global, async |gateway| allow(gateway, global, args).await)
            }
            Self::Test(args) => with_api(global, Daemon::Running, async |api| {
                test(api, global, args).await
            }),
        }
    }
}

async fn test(api: &mut Api, global: &Global, args: &TestArgs) -> anyhow::Result<Exit> {
    let arguments = read_arguments(&args.arguments)?;
    api.survey().await?;
    let request = ApiRequest::TestCall(TestedCall {
        tool_name: args.name.clone(),
        tool_input: JsonObject::try_from(arguments).map_err(refuse)?,
        client: args.client.clone(),
    });
    let reply = api.ask(request, Exit::Nothing).await?;
    let ApiReply::Verdict(value) = reply else {
        return Err(explain_reply(&reply));
    };
    for rule in &value.idle_rules {
        report::say(&format!(
            "warning: {}: {}\nhint: {}",
            rule.about, rule.found, rule.next
        ));
    }
    if global.json {
        report::print_json(&json!(value));
    } else {
        let reason = value.reason.iter().map(|reason| format!(": {reason}"));
        let reason: String = reason.collect();
        let (verdict, at, by) = (&value.decision, &value.tool, &value.by);
        report::print_data(&wrap(&format!("{verdict} {at}, by {by}{reason}"), 2));
    }
    Ok(Exit::of_hit(value.decision == "allow"))
}

/// Allows a tool, prompt or resource permanently, by a rule directly before the one that restricts it.
async fn allow(gateway: &Gateway, global: &Global, asked: &AllowArgs) -> anyhow::Result<Exit> {
    let (name, client) = (&asked.name, asked.client.as_deref());
    let (server, own) = name.split_once('/').ok_or_else(|| {
        refuse(format!(
            "`{name}` names no server\nhint: write `SERVER/TOOL`, as a search shows it"
        ))
    })?;
    let generation = gateway.catalog.registry.generation()?;
    let known = generation.servers();
    let found = known.iter().find(|known| known.name.as_str() == server);
    let thing = match (asked.prompt, asked.resource, found) {
        (false, false, _) => Thing::Tool(name),
        (true, _, Some(server)) => Thing::Prompt(server, own),
        (_, true, Some(server)) => Thing::Resource(server, own),
        (_, _, None) => {
            return Err(refuse(EditError::Unknown {
                name: server.to_owned(),
                known: known.iter().map(|it| it.name.to_string()).collect(),
            }));
        }
    };
    let found = gateway.authorizer.find_allowance(thing, client).await;
    let allowance = match found.map_err(|error| Exit::Usage.with(error.to_string()))? {
        Ok(allowance) => allowance,
        Err(NotAllowable::Allowed(by)) => {
            report::say(&format!("allowed already: {name}, by {by}"));
            return Ok(Exit::Success);
        }
        Err(why) => return Err(refuse(EditError::NotAllowable(why))),
    };
    let (overrides, env) = (global.overrides(), Environment::of_process());
    edit::edit(global, |document| {
        let number = document.allow(&allowance, &overrides, &env)?;
        Ok(match number {
            None => format!("allowed already: {name}"),
            Some(1) => format!("allowed: {name}, by rule 1"),
            Some(number) => {
                format!("allowed: {name}, by rule {number}; the rules before it still come first")
            }
        })
    })
}
