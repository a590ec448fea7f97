//! `proxy policy`, `proxy allow`: the rules for calls.

use std::{collections::BTreeSet, sync::Arc};

use ::policy::{NotAllowable, Verdict};
use config::{Environment, edit::EditError};
use gateway::{Gateway, Thing, Weight};
use serde_json::json;

use super::{call::read_arguments, edit};
use crate::{
    cli::{Allow, Global, PolicyAction},
    exit::Exit,
    report,
    table::wrap,
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
        .authorizer
        .test_call(&name, arguments.get(), client.as_deref())
        .await;
    let settings = gateway.settings();
    let known = gateway::list_known_names(&gateway.catalog.registry, &settings);
    let found = gateway::find_idle_rules(&settings, known, &[], &BTreeSet::new());
    let idle = found.idle.iter();
    let idle: Vec<_> = idle.filter(|it| it.weight == Weight::Safety).collect();
    for rule in &idle {
        report::say(&format!(
            "warning: {}: {}\nhint: {}",
            rule.about, rule.found, rule.next
        ));
    }
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
            "idle_rules": idle.iter().map(|rule| json!({
                "about": rule.about, "found": rule.found, "next": rule.next,
            })).collect::<Vec<_>>(),
        }));
    } else {
        let reason = decision.reason.iter().map(|reason| format!(": {reason}"));
        let reason: String = reason.collect();
        report::print_data(&wrap(&format!("{verdict} {at}, by {by}{reason}"), 2));
    }
    Ok(match decision.verdict {
        Verdict::Allow => Exit::Success,
        Verdict::Ask | Verdict::Deny => Exit::Nothing,
    })
}

/// Allows a tool, prompt or resource permanently, by a rule directly before the one that restricts it.
pub(super) async fn allow(
    gateway: &Gateway,
    global: &Global,
    asked: &Allow,
) -> anyhow::Result<Exit> {
    let refuse = |why: EditError| {
        report::say(&format!("error: {why}"));
        Ok(Exit::Usage)
    };
    let (name, client) = (&asked.name, asked.client.as_deref());
    let Some((server, own)) = name.split_once('/') else {
        report::say(&format!(
            "error: `{name}` names no server\nhint: write `SERVER/TOOL`, as a search shows it"
        ));
        return Ok(Exit::Usage);
    };
    let generation = gateway.catalog.registry.generation()?;
    let known = generation.servers();
    let found = known.iter().find(|known| known.name.as_str() == server);
    let thing = match (asked.prompt, asked.resource, found) {
        (false, false, _) => Thing::Tool(name),
        (true, _, Some(server)) => Thing::Prompt(server, own),
        (_, true, Some(server)) => Thing::Resource(server, own),
        (_, _, None) => {
            return refuse(EditError::Unknown {
                name: server.to_owned(),
                known: known.iter().map(|it| it.name.to_string()).collect(),
            });
        }
    };
    let allowance = match gateway.authorizer.find_allowance(thing, client).await {
        Ok(Ok(allowance)) => allowance,
        Ok(Err(NotAllowable::Allowed(by))) => {
            report::say(&format!("allowed already: {name}, by {by}"));
            return Ok(Exit::Success);
        }
        Ok(Err(why)) => return refuse(EditError::NotAllowable(why)),
        Err(error) => {
            report::say(&error.to_string());
            return Ok(Exit::Usage);
        }
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
