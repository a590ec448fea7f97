//! Commands that look at tools: `search`, `describe`, `list`.

use std::sync::Arc;

use gateway::{DESCRIBE, Gateway, policy::Client};
use registry::{Entry, Generation, Query};
use serde_json::{Value, json};
use tool::ServerName;

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
    let answer = gateway.search(query(search), None).await?;
    if global.json {
        report::json(&gateway.search_json(&answer));
    } else {
        report::data(&gateway.search_text(&answer, &Client::default()).await?);
    }
    Ok(if answer.has_hits() {
        Exit::Success
    } else {
        Exit::Nothing
    })
}

fn query(search: Search) -> Query {
    let category = search.category.map(|name| name.trim().to_owned());
    Query {
        category: category.filter(|name| !name.is_empty()),
        tags: search.tags,
        limit: search.max_results,
        offset: search.offset,
        why: search.why,
        ..Query::words(search.query.join(" ").trim())
    }
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
    let entries = list_entries(&generation, of);
    if global.json {
        let tools: Vec<Value> = entries
            .iter()
            .map(|it| json!({"name": it.at.to_string(), "purpose": it.purpose(), "category": it.category}))
            .collect();
        report::json(&Value::Array(tools));
    } else {
        let text = list_text(&entries);
        if !text.is_empty() {
            report::data(&text);
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

/// The tools of a server or category; of all servers but our own.
fn list_entries<'a>(generation: &'a Generation, of: Option<&str>) -> Vec<&'a Entry> {
    let wanted = of.map(tool::fold);
    let is_wanted = |entry: &&Entry| {
        // Our own tools are listed for who names us.
        let is_own = entry.at.server == ServerName::built_in();
        wanted.as_ref().map_or(!is_own, |of| {
            let is_of = |text: &str| tool::fold(text) == *of;
            is_of(entry.at.server.as_str()) || (!is_own && is_of(&entry.category))
        })
    };
    generation.entries().filter(is_wanted).collect()
}

fn list_text(entries: &[&Entry]) -> String {
    let line = |entry: &&Entry| format!("{} - {}", entry.at, entry.purpose());
    let lines: Vec<String> = entries.iter().map(line).collect();
    lines.join("\n")
}
