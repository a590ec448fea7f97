//! `cargo run --example search -- WORDS`: what two servers offer, committed to a folder and
//! searched.
#![expect(clippy::print_stdout, reason = "a program for a terminal")]

use std::error::Error;

use registry::{News, Query, Registry, Rules, ServerRules, Snapshot};
use tool::{ServerName, Tool};

const SERVERS: [(&str, &[&str]); 2] = [
    (
        "mail",
        &[
            r#"{"name": "send_message", "description": "Send a mail to one person or several."}"#,
            r#"{"name": "list_inbox", "description": "List what came in, the newest first."}"#,
        ],
    ),
    (
        "git",
        &[
            r#"{"name": "git_log", "description": "Show the commits of a branch."}"#,
            r#"{"name": "git_diff", "description": "Show what changed between two commits."}"#,
        ],
    ),
];

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let names: Vec<ServerName> = SERVERS
        .iter()
        .map(|(name, _)| name.parse())
        .collect::<Result<_, _>>()?;
    let rules = Rules {
        servers: names.iter().cloned().map(ServerRules::plain).collect(),
        ..Rules::default()
    };
    let registry = Registry::open(folder.path(), rules)?;
    let mut news = Vec::new();
    for (server, (_, tools)) in names.into_iter().zip(SERVERS) {
        news.push(news_of(server, tools)?);
    }
    for planned in registry.commit(news, false, 0)? {
        println!(
            "{}: {} tools added",
            planned.server,
            planned.plan.added.len()
        );
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    let found = registry
        .generation()?
        .search(&Query::words(words.join(" ")));
    for hit in &found.hits {
        println!(
            "{:6.2}  {} - {}",
            hit.score,
            hit.entry.at,
            hit.entry.purpose()
        );
    }
    println!("{} of {}", found.hits.len(), found.total);
    Ok(())
}

/// A survey of a server with these tools.
fn news_of(server: ServerName, tools: &[&str]) -> Result<News, Box<dyn Error>> {
    let parsed: Result<Vec<Tool>, _> = tools.iter().map(|json| Tool::parse(json)).collect();
    let snapshot = Snapshot {
        server: server.clone(),
        tools: parsed?,
        offer: tool::Offer::default(),
        server_name: server.to_string(),
        server_version: "1.0.0".to_owned(),
        instructions: None,
        protocol: "2025-11-25".to_owned(),
        transport: None,
        asking_calls: Vec::new(),
        tokens: 0,
        surveyed_at: 0,
    };
    Ok(News {
        server,
        asked_ms: 0,
        outcome: Ok(snapshot),
    })
}
