//! `proxy tokens`: what all definitions would cost loaded up front, and what ours cost.

use std::sync::Arc;

use excerpt::tokens;
use gateway::{Gateway, instructions, policy::ClientPolicy};
use printable::{count_of, group_digits};
use serde_json::{Value, json};

use crate::{cli::Global, exit::Exit, report};

/// The tools that Claude Code gives its model where a server announces resources, 2,149 characters
/// of definitions; other clients give some of the same size.
const RESOURCE_TOOLS_TOKENS: usize = 540;

pub(super) async fn count_tokens(
    gateway: &Arc<Gateway>,
    global: &Global,
    by_tool: bool,
) -> anyhow::Result<Exit> {
    let generation = gateway.generation().await?;
    if by_tool {
        return Ok(print_tokens_by_tool(&generation, global.json));
    }
    let catalog = gateway.registry.catalog();
    let counts: Vec<usize> = Gateway::offered(&generation)
        .map(|entry| gateway::count_definition(entry.tool.json()))
        .collect();
    let theirs: usize = counts.iter().sum();
    let servers = catalog.servers.iter().filter(|it| it.tools > 0).count();
    let ours = gateway::count_ours()
        + tokens::count(&instructions(&catalog, &ClientPolicy::default(), &[], &[]));
    let announces = gateway.announces_resources(&ClientPolicy::default());
    let resources = if announces { RESOURCE_TOOLS_TOKENS } else { 0 };
    let saved = theirs.saturating_sub(ours);
    let percent = (saved * 100).checked_div(theirs).unwrap_or(0);
    if global.json {
        report::print_json(&json!({
            "servers": servers,
            "tools": counts.len(),
            "loaded_up_front": theirs,
            "through_proxy": ours,
            "resource_tools_of_clients": resources,
            "saved": saved,
            "saved_percent": percent,
            "encoding": "o200k",
        }));
    } else {
        report::print_data(&format!(
            "{} of {}, loaded up front  {:>9} tokens\n\
             three tools and instructions of proxy{}  {:>9} tokens\n\
             saved in every session{}  {:>9} tokens ({percent} %)",
            count_of(counts.len(), "tool"),
            count_of(servers, "server"),
            group_digits(theirs),
            " ".repeat(4),
            group_digits(ours),
            " ".repeat(19),
            group_digits(saved),
        ));
        if announces {
            report::print_data(&format!(
                "resources are announced: some clients add tools for them  {:>9} tokens \
                 (clients.NAME.resources = \"off\")",
                group_digits(resources),
            ));
        }
    }
    Ok(Exit::Success)
}

fn print_tokens_by_tool(generation: &registry::Generation, as_json: bool) -> Exit {
    let mut counts: Vec<(usize, String)> = Gateway::offered(generation)
        .map(|entry| {
            (
                gateway::count_definition(entry.tool.json()),
                entry.at.to_string(),
            )
        })
        .collect();
    counts.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    if as_json {
        let list = counts
            .iter()
            .map(|(count, name)| json!({"name": name, "tokens": count}));
        report::print_json(&Value::Array(list.collect()));
    } else {
        let lines: Vec<String> = counts
            .iter()
            .map(|(count, name)| format!("{:>9}  {name}", group_digits(*count)))
            .collect();
        report::print_data(&lines.join("\n"));
    }
    Exit::Success
}
