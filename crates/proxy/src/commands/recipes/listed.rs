//! `proxy add --list --registry`: the servers of a registry.

use recipes::{ListedServer, StartMethod, Transport};
use serde_json::{Value, json};
use setup::catalogue::{CatalogueError, RegistrySource};

use crate::{
    cli::global::Global,
    event_loop::run_async,
    exit::{Exit, refuse},
    report,
    table::render_rows,
};

const SERVERS_MAX: usize = 30;

/// The registry of the option, else that of the environment, else the official one.
pub(crate) fn registry_of(from: Option<&str>) -> Result<RegistrySource, CatalogueError> {
    let variable = std::env::var("PROXY_REGISTRY")
        .ok()
        .filter(|it| !it.is_empty());
    RegistrySource::parse(from.or(variable.as_deref()))
}

pub(crate) fn search(global: &Global, words: &str, from: Option<&str>) -> anyhow::Result<Exit> {
    let source = registry_of(from).map_err(refuse)?;
    let found = run_async(source.search(words))??;
    if found.is_empty() {
        return Err(Exit::Nothing.with(format!(
            "{} has no server with these words\nhint: it compares single words with names",
            source.shown()
        )));
    }
    if global.json {
        report::print_json(&found.iter().map(to_json).collect());
        return Ok(Exit::Success);
    }
    let rows = found.iter().take(SERVERS_MAX).map(|it| {
        let kinds: Vec<&str> = it.ways.iter().map(|way| way.kind.as_str()).collect();
        let mark = if it.status == "active" {
            String::new()
        } else {
            format!("[{}] ", it.status)
        };
        [
            it.name.clone(),
            it.version.clone(),
            kinds.join(","),
            format!("{mark}{}", it.description),
        ]
    });
    report::print_data(&render_rows(rows.collect()));
    let more = found.len().saturating_sub(SERVERS_MAX);
    if more > 0 {
        report::say(&format!("{more} more; use more words"));
    }
    report::say("to add one: proxy add registry:NAME");
    Ok(Exit::Success)
}

fn to_json(server: &ListedServer) -> Value {
    let ways = server.ways.iter().map(|recipe| {
        json!({"kind": recipe.kind.as_str(), "package": recipe.package, "way": way_json(&recipe.way)})
    });
    json!({"name": server.name, "version": server.version, "status": server.status, "description": server.description,
        "source": server.source, "ways": ways.collect::<Vec<_>>(), "left_out": server.left_out})
}

/// Renders the way to start or reach a server.
pub(super) fn way_json(way: &StartMethod) -> Value {
    match way {
        StartMethod::Command(command) => json!({ "command": command }),
        StartMethod::Remote {
            url,
            transport,
            headers,
        } => {
            let transport = match transport {
                Transport::Http => "http",
                Transport::Sse => "sse",
            };
            json!({"url": url, "transport": transport, "headers": headers})
        }
    }
}
