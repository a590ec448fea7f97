//! `proxy add registry:NAME`: a server of a registry, shown before it is added.

use std::collections::BTreeSet;

use recipes::{ListedServer, Recipe};
use setup::catalogue::{choose_way, name_of_listed};

use super::{
    answers::{Prepared, by_answers},
    args::AddArgs,
};
use crate::{
    commands::recipes::{listed::registry_of, open_entry},
    event_loop::run_async,
    exit::refuse,
    report,
    table::wrap,
};

/// Finds the server, shows what would be added, and asks.
pub(super) fn prepare(asked: &str, given: &AddArgs) -> anyhow::Result<Prepared> {
    // A name has no `@`.
    let (name, version) = match asked.split_once('@') {
        Some((name, version)) => (name, Some(version)),
        None => (asked, None),
    };
    let source = registry_of(given.from.as_deref()).map_err(refuse)?;
    let server = run_async(source.find(name, version))?.map_err(refuse)?;
    if server.status == "deleted" {
        let why = format!("`{}` was deleted from the registry", server.name);
        return Err(refuse(why));
    }
    let way = choose_way(&server, given.via.as_deref()).map_err(refuse)?;
    let proposed = name_of_listed(&server)
        .ok_or_else(|| refuse("no name can be derived from this\nhint: add --as NAME"))?;
    report::say(&render(&server, way, &source.shown()));
    if !given.yes {
        if !report::can_ask() {
            return Err(refuse(format!(
                "nothing was added without a person\nhint: proxy add registry:{}@{} --yes",
                server.name, server.version
            )));
        }
        if !report::confirm("add it? [y]es, [n]o:") {
            return Err(refuse("nothing was added"));
        }
    }
    // Recipes live as long as the program; this one is the only one of its kind.
    let recipe: &'static Recipe = Box::leak(Box::new(way.clone()));
    let typed = format!("registry:{}", server.name);
    by_answers(&typed, (recipe, proposed.as_str()), given.set.iter(), given)
}

/// Everything that decides about trust: whose it is, what is run, from where, and what it gets.
fn render(server: &ListedServer, recipe: &Recipe, source: &str) -> String {
    let entry = open_entry(recipe, BTreeSet::new());
    let mut rows = vec![("from", source.to_owned())];
    rows.extend(server.source.clone().map(|it| ("source", it)));
    if server.status != "active" {
        rows.push(("status", server.status.clone()));
    }
    if let Some(package) = &recipe.package {
        rows.push(("package", format!("{package} ({})", recipe.kind.as_str())));
    }
    let words = entry.command.iter().chain(&entry.args);
    let words: Vec<String> = words.map(|it| printable::quote_word(it)).collect();
    if !words.is_empty() {
        rows.push(("command", words.join(" ")));
    }
    rows.extend(entry.url.map(|it| ("address", it)));
    let sets = entry.env.iter();
    let sets = sets.map(|(name, value)| ("sets", format!("{name}={value}")));
    rows.extend(sets.filter(|(_, it)| !it.contains("=${")));
    let headers = entry.headers.iter();
    rows.extend(headers.map(|(name, value)| ("header", format!("{name}: {value}"))));
    for variable in &recipe.variables {
        let kind = if variable.secret { "secret" } else { "value" };
        let need = if variable.required { "gets" } else { "may get" };
        rows.push((
            need,
            format!("{} ({kind}): {}", variable.name, variable.what),
        ));
    }
    let others = server.ways.iter().map(|it| it.kind.as_str());
    let others: Vec<&str> = others.filter(|it| *it != recipe.kind.as_str()).collect();
    if !others.is_empty() {
        rows.push(("or", format!("--via {}", others.join(", --via "))));
    }
    let rows = rows
        .iter()
        .map(|(label, text)| wrap(&format!("  {label:8}  {}", printable::one_line(text)), 12));
    let head = format!("{} {}: {}", server.name, server.version, server.description);
    format!(
        "{}\n{}",
        wrap(&printable::one_line(&head), 2),
        rows.collect::<Vec<_>>().join("\n")
    )
}
