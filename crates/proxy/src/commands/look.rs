//! Commands that look at tools: `search`, `describe`, `list`.

use std::sync::Arc;

use gateway::{DESCRIBE, Gateway, SEARCH};
use serde_json::{Value, json};

use super::reply::{ask_tool, print_reply};
use crate::{
    cli::{Global, Search},
    exit::Exit,
    report,
};

pub(super) async fn search(
    gateway: &Arc<Gateway>,
    global: &Global,
    search: Search,
) -> anyhow::Result<Exit> {
    let mut arguments = json!({
        "query": search.query.join(" "),
        "category": search.category,
        "tags": search.tags,
        "max_results": search.max_results,
        "offset": search.offset,
    });
    if search.why {
        arguments["why"] = json!(true);
    }
    if global.json {
        arguments["format"] = json!("json");
    }
    let reply = ask_tool(gateway, SEARCH, &arguments).await?;
    let text = reply.printable();
    let found = gateway.has_hits(&arguments).await?;
    if global.json {
        report::json(&serde_json::from_str(&text)?);
    } else {
        report::data(&text);
    }
    Ok(if found { Exit::Success } else { Exit::Nothing })
}

pub(super) async fn describe(
    gateway: &Arc<Gateway>,
    global: &Global,
    names: &[String],
) -> anyhow::Result<Exit> {
    if !global.json {
        let reply = ask_tool(gateway, DESCRIBE, &json!({"name": names})).await?;
        return Ok(print_reply(&reply));
    }
    let generation = gateway.generation().await?;
    let names = names.iter().flat_map(|name| name.split(','));
    let mut tools = Vec::new();
    for name in names {
        match gateway.find(&generation, name).await {
            Ok(entry) => tools.push(gateway.describe_json(&generation, &entry)),
            Err(error) => {
                report::say(&error.to_string());
                return Ok(Exit::Nothing);
            }
        }
    }
    let one = if tools.len() == 1 { tools.pop() } else { None };
    report::json(&one.unwrap_or(Value::Array(tools)));
    Ok(Exit::Success)
}

pub(super) async fn list(
    gateway: &Arc<Gateway>,
    global: &Global,
    of: Option<&str>,
) -> anyhow::Result<Exit> {
    let generation = gateway.generation().await?;
    let wanted = of.map(tool::fold);
    let is_wanted = |entry: &&registry::Entry| {
        // Our own tools are listed for who names us.
        let is_own = entry.at.server == tool::ServerName::built_in();
        wanted.as_ref().map_or(!is_own, |of| {
            let is_of = |text: &str| tool::fold(text) == *of;
            is_of(entry.at.server.as_str()) || (!is_own && is_of(&entry.category))
        })
    };
    let entries: Vec<&registry::Entry> = generation.entries().filter(is_wanted).collect();
    if global.json {
        let tools: Vec<Value> = entries
            .iter()
            .map(|it| json!({"name": it.at.to_string(), "purpose": it.purpose(), "category": it.category}))
            .collect();
        report::json(&Value::Array(tools));
    } else {
        let lines: Vec<String> = entries
            .iter()
            .map(|entry| format!("{} - {}", entry.at, entry.purpose()))
            .collect();
        if !lines.is_empty() {
            report::data(&lines.join("\n"));
        }
    }
    if entries.is_empty() {
        report::say(&match of {
            Some(of) => format!("no tools in `{of}`"),
            None => "no tools".to_owned(),
        });
        return Ok(Exit::Nothing);
    }
    Ok(Exit::Success)
}
