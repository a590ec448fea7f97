//! `proxy servers --tokens`: the tokens that all definitions would cost if loaded up front, and those that ours
//! cost.

use std::sync::Arc;

use excerpt::tokens;
use gateway::{Gateway, announces_resources, instructions, policy::ClientPolicy};
use printable::{count_of, group_digits};
use serde_json::json;

use crate::{exit::Exit, report, table::render_rows};

/// The tools that Claude Code gives its model if a server announces resources: 2,149 characters of
/// definitions. Other clients have some of the same size.
const RESOURCE_TOOLS_TOKENS: usize = 540;

pub(super) async fn print_tokens(
    gateway: &Arc<Gateway>,
    as_json: bool,
    by_tool: bool,
    price: Option<f64>,
) -> anyhow::Result<Exit> {
    let generation = gateway.catalog.generation().await?;
    if by_tool {
        return Ok(print_tokens_by_tool(&generation, as_json));
    }
    let catalog = gateway.catalog.registry.catalog();
    let counts: Vec<usize> = gateway::list_offered(&generation)
        .map(|entry| gateway::count_definition(entry.tool.json()))
        .collect();
    let theirs: usize = counts.iter().sum();
    let servers = catalog.servers.iter().filter(|it| it.tools > 0).count();
    let client = ClientPolicy::default();
    let ours =
        gateway::count_ours() + tokens::count(&instructions(&catalog, &client, &[], &[], None));
    let announces = announces_resources(&gateway.catalog.registry.catalog(), &client);
    let resources = if announces { RESOURCE_TOOLS_TOKENS } else { 0 };
    let saved = theirs.saturating_sub(ours);
    let percent = (saved * 100).checked_div(theirs).unwrap_or(0);
    let dollars = |count: usize| price.map(|price| cost(count, price));
    if as_json {
        report::print_json(&json!({
            "servers": servers,
            "tools": counts.len(),
            "loaded_up_front": theirs,
            "through_proxy": ours,
            "resource_tools_of_clients": resources,
            "saved": saved,
            "saved_percent": percent,
            "dollars_per_million": price,
            "loaded_up_front_dollars": dollars(theirs),
            "through_proxy_dollars": dollars(ours),
            "saved_dollars": dollars(saved),
            "encoding": "o200k",
        }));
    } else {
        let up_front = format!(
            "{} of {}, loaded up front",
            count_of(counts.len(), "tool"),
            count_of(servers, "server")
        );
        let row = |label: &str, count, remark: String| {
            let price = dollars(count).map_or(String::new(), |it| format!(", ${it:.4}"));
            let count = format!("{} tokens{remark}{price}", group_digits(count));
            [label.to_owned(), count]
        };
        let mut rows = vec![
            row(&up_front, theirs, String::new()),
            row("three tools and instructions of proxy", ours, String::new()),
            row("saved in every session", saved, format!(" ({percent} %)")),
        ];
        let mut hint = "";
        if announces {
            let label = "tools of some clients for resources";
            rows.push(row(label, resources, String::new()));
            hint = "\nhint: clients.NAME.resources = \"off\" saves these";
        }
        report::print_data(&format!("{}{hint}", render_rows(rows)));
    }
    Ok(Exit::Success)
}

/// The price of tokens in dollars, to a millionth.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52 tokens")]
fn cost(count: usize, dollars_per_million: f64) -> f64 {
    (count as f64 * dollars_per_million).round() / 1e6
}

fn print_tokens_by_tool(generation: &registry::Generation, as_json: bool) -> Exit {
    let mut counts: Vec<(usize, String)> = gateway::list_offered(generation)
        .map(|it| (gateway::count_definition(it.tool.json()), it.at.to_string()))
        .collect();
    counts.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    if as_json {
        let list = counts.iter();
        let list = list.map(|(count, name)| json!({"name": name, "tokens": count}));
        report::print_json(&list.collect());
    } else {
        let rows = counts.into_iter();
        let rows = rows.map(|(count, name)| [group_digits(count), name]);
        report::print_data(&render_rows(rows.collect()));
    }
    Exit::Success
}
