//! `proxy recipes --registry`: the servers of a registry.

use recipes::ListedServer;
use serde_json::{Value, json};
use setup::catalogue::{CatalogueError, RegistrySource};

use super::way::way_json;
use crate::{cli::global::Global, event_loop::run_async, exit::Exit, report, table::render_rows};

/// The most servers that are listed.
const SERVERS_MAX: usize = 30;

/// The registry of the option, else that of the environment, else the official one.
pub(crate) fn registry_of(from: Option<&str>) -> Result<RegistrySource, CatalogueError> {
    let variable = std::env::var("PROXY_REGISTRY")
        .ok()
        .filter(|it| !it.is_empty());
    RegistrySource::parse(from.or(variable.as_deref()))
}

pub(super) fn search(global: &Global, words: &str, from: Option<&str>) -> anyhow::Result<Exit> {
    let source = match registry_of(from) {
        Ok(source) => source,
        Err(error) => {
            report::say(&format!("error: {error}"));
            return Ok(Exit::Usage);
        }
    };
    let found = run_async(source.search(words))??;
    if found.is_empty() {
        report::say(&format!(
            "{} has no server with these words\nhint: it compares single words with names",
            source.shown()
        ));
        return Ok(Exit::Nothing);
    }
    if global.json {
        report::print_json(&found.iter().map(to_json).collect());
        return Ok(Exit::Success);
    }
    let rows = found.iter().take(SERVERS_MAX).map(|it| {
        let kinds: Vec<&str> = it.ways.iter().map(|way| way.recipe.kind.as_str()).collect();
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
    let ways = server.ways.iter().map(|way| {
        let recipe = &way.recipe;
        json!({"kind": recipe.kind.as_str(), "package": recipe.package, "way": way_json(&recipe.way), "digest": way.digest})
    });
    json!({"name": server.name, "version": server.version, "status": server.status, "description": server.description,
        "website": server.website, "ways": ways.collect::<Vec<_>>(), "left_out": server.left_out})
}
