//! Testing a call against the rules.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{error::ApiError, json_object::JsonObject, tools::explain};
use crate::{
    gateway::Gateway,
    idle_rules::{IdleRuleStatus, list_idle_rules},
};

/// A call to test.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(rename = "Tested"))]
pub struct TestedCall {
    /// The name of the tool.
    pub tool_name: String,
    /// Its arguments.
    #[serde(default)]
    pub tool_input: JsonObject,
    /// The client with this name; without it, a person at the command line.
    pub client: Option<String>,
}

/// The decision about it.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    /// The tool that was found.
    pub tool: String,
    /// `allow`, `ask` or `deny`.
    pub decision: Cow<'static, str>,
    /// `rule 2`, or the preset.
    pub by: String,
    /// The rule that decided, counted from 1.
    pub rule: Option<usize>,
    /// Its reason.
    pub reason: Option<String>,
    /// The rules that restrict access and match nothing.
    pub idle_rules: Vec<IdleRuleStatus>,
}

/// Decides about a call without making it.
pub async fn test_call(gateway: &Gateway, asked: TestedCall) -> Result<Verdict, ApiError> {
    let client = asked.client.as_deref().filter(|it| !it.is_empty());
    let tested = gateway
        .authorizer
        .test_call(&asked.tool_name, asked.tool_input.get(), client)
        .await;
    let (at, decision) = tested.map_err(|error| explain(&error).at("tool_name"))?;
    Ok(Verdict {
        tool: at.to_string(),
        decision: Cow::Borrowed(decision.verdict.as_str()),
        by: decision.by().to_string(),
        rule: decision.rule,
        reason: decision.reason.clone(),
        idle_rules: list_idle_rules(gateway),
    })
}
