//! `proxy policy`, `proxy allow`: the rules for calls.

use std::sync::Arc;

use ::policy::Verdict;
use config::edit::AllowRule;
use gateway::Gateway;
use serde_json::json;

use super::{call::read_arguments, edit};
use crate::{
    cli::{Allow, Global, PolicyAction},
    exit::Exit,
    report,
};

pub(super) async fn look(
    gateway: &Arc<Gateway>,
    global: &Global,
    action: PolicyAction,
) -> anyhow::Result<Exit> {
    let PolicyAction::Test {
        name,
        arguments,
        client,
    } = action;
    let arguments = read_arguments(&arguments)?;
    let tested = gateway
        .test_call(&name, arguments.get(), client.as_deref())
        .await;
    let (at, decision) = match tested {
        Ok(tested) => tested,
        Err(error) => {
            report::say(&error.to_string());
            return Ok(Exit::Nothing);
        }
    };
    let (verdict, by) = (decision.verdict.as_str(), decision.by().to_string());
    if global.json {
        report::print_json(&json!({
            "tool": at.to_string(),
            "decision": verdict,
            "by": by,
            "rule": decision.rule(),
            "reason": decision.reason,
        }));
    } else {
        let reason = decision.reason.iter().map(|reason| format!(": {reason}"));
        let reason: String = reason.collect();
        report::print_data(&format!("{verdict} {at}, by {by}{reason}"));
    }
    Ok(match decision.verdict {
        Verdict::Allow => Exit::Success,
        Verdict::Ask | Verdict::Deny => Exit::Nothing,
    })
}

pub(super) fn allow(global: &Global, allow: &Allow) -> anyhow::Result<Exit> {
    let Some((server, name)) = allow.name.split_once('/') else {
        report::say(&format!(
            "error: `{}` names no server\nhint: write `SERVER/TOOL`, as a search shows it",
            allow.name
        ));
        return Ok(Exit::Usage);
    };
    let key = match (allow.prompt, allow.resource) {
        (true, _) => "prompt",
        (_, true) => "resource",
        _ => "tool",
    };
    let rule = AllowRule {
        key,
        server,
        name,
        client: allow.client.as_deref(),
    };
    edit::edit(global, |document| {
        if document.servers().iter().all(|known| known != server) {
            let (name, known) = (server.to_owned(), document.servers());
            return Err(config::edit::EditError::Unknown { name, known });
        }
        Ok(if document.allow(&rule) {
            format!("allowed: {}; a rule before the others says so", allow.name)
        } else {
            format!("allowed already: {}", allow.name)
        })
    })
}
