//! Commands that look at tools: `search`, `describe`, `list`.

use std::sync::Arc;

use gateway::{DESCRIBE, Gateway, policy::ClientPolicy};
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
    let answer = gateway.search(query_of(search), None).await?;
    if global.json {
        report::print_json(&gateway.search_json(&answer));
    } else {
        report::print_data(
            &gateway
                .search_text(&answer, &ClientPolicy::default())
                .await?,
        );
    }
    Ok(if answer.has_hits() {
        Exit::Success
    } else {
        Exit::Nothing
    })
}

fn query_of(search: Search) -> Query {
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
    report::print_json(&one.unwrap_or(Value::Array(tools)));
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
        report::print_json(&Value::Array(tools));
    } else {
        let text = list_text(&entries);
        if !text.is_empty() {
            report::print_data(&text);
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

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use registry::{News, Options, Registry, Rules, ServerRules, Snapshot};
    use tool::{ServerName, Tool};

    use super::{list_entries, list_text};

    fn tool(json: &str) -> Tool {
        Tool::parse(json).unwrap()
    }

    fn survey(server: &ServerName, tools: Vec<Tool>) -> News {
        let snapshot = Snapshot {
            server: server.clone(),
            tools,
            offer: tool::Offer::default(),
            server_name: server.to_string(),
            server_version: String::new(),
            instructions: None,
            protocol: "2025-11-25".to_owned(),
            transport: None,
            tokens: 0,
            surveyed_at: 0,
        };
        News {
            server: server.clone(),
            outcome: Ok(snapshot),
        }
    }

    #[test]
    fn a_list_has_a_line_a_tool_and_ours_only_for_who_names_us() {
        let folder = tempfile::tempdir().unwrap();
        let [git, mail]: [ServerName; 2] = ["git", "mail"].map(|name| name.parse().unwrap());
        let rules = Rules {
            servers: [&git, &mail]
                .map(|it| ServerRules::plain(it.clone()))
                .into(),
            ..Rules::default()
        };
        let options = Options {
            built_in: vec![
                tool(r#"{"name": "read_result", "description": "Read a result."}"#).into(),
            ],
            ..Options::default()
        };
        let registry = Registry::open_with(folder.path(), rules, options).unwrap();
        let log = r#"{"name": "git_log", "description": "Show the commits. Newest first."}"#;
        let inbox = r#"{"name": "list_inbox"}"#;
        let news = vec![
            survey(&git, vec![tool(log), tool(r#"{"name": "git_diff"}"#)]),
            survey(&mail, vec![tool(inbox)]),
        ];
        registry.commit(news, false, 0).unwrap();
        let generation = registry.generation().unwrap();
        let list = |of| list_text(&list_entries(&generation, of));
        assert_snapshot!(list(None), @"
        git/git_diff - Git diff
        git/git_log - Show the commits
        mail/list_inbox - List inbox
        ");
        assert_snapshot!(list(Some("Mail")), @"mail/list_inbox - List inbox");
        assert_snapshot!(list(Some("proxy")), @"proxy/read_result - Read a result");
        assert_snapshot!(list(Some("nobody")), @"");
    }
}
