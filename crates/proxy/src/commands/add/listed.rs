//! `proxy add registry:NAME`: a server of a registry, shown before it is added.

use recipes::{ListedServer, ListedWay, Recipe, RecipeValues, ServerTable};
use setup::catalogue::{choose_way, name_of_listed};

use super::{
    answers::{Prepared, by_answers},
    args::AddArgs,
};
use crate::{commands::recipes::listed::registry_of, event_loop::run_async, report, table::wrap};

/// Finds the server, shows what would be added, and asks.
pub(super) fn prepare(asked: &str, given: &AddArgs) -> anyhow::Result<Result<Prepared, String>> {
    // A name has no `@`.
    let (name, version) = match asked.split_once('@') {
        Some((name, version)) => (name, Some(version)),
        None => (asked, None),
    };
    let source = match registry_of(given.from.as_deref()) {
        Ok(source) => source,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let server = match run_async(source.find(name, version))? {
        Ok(server) => server,
        Err(error) => return Ok(Err(error.to_string())),
    };
    if server.status.starts_with("deleted") {
        return Ok(Err(format!(
            "`{}` was deleted from the registry ({})",
            server.name, server.status
        )));
    }
    let way = match choose_way(&server, given.via.as_deref()) {
        Ok(way) => way,
        Err(why) => return Ok(Err(why)),
    };
    let Some(proposed) = name_of_listed(&server) else {
        return Ok(Err(
            "no name can be derived from this\nhint: add --as NAME".to_owned()
        ));
    };
    report::say(&render(&server, way, &source.shown()));
    if !given.yes {
        if !report::can_ask() {
            return Ok(Err(format!(
                "nothing was added without a person\nhint: proxy add registry:{}@{} --yes",
                server.name, server.version
            )));
        }
        let answer = report::ask("add it? [y]es, [n]o:");
        if !["y", "yes"].contains(&answer.as_str()) {
            return Ok(Err("nothing was added".to_owned()));
        }
    }
    // Recipes live as long as the program; this one is the only one of its kind.
    let recipe: &'static Recipe = Box::leak(Box::new(way.recipe.clone()));
    let typed = format!("registry:{}", server.name);
    by_answers(&typed, (recipe, proposed.as_str()), given.set.iter(), given)
}

/// Everything that decides about trust: whose it is, what is run, from where, and what it gets.
pub(super) fn render(server: &ListedServer, way: &ListedWay, source: &str) -> String {
    let recipe = &way.recipe;
    let entry = open_entry(recipe);
    let mut rows = vec![("from", source.to_owned())];
    rows.extend(server.website.clone().map(|it| ("source", it)));
    if server.status != "active" {
        rows.push(("status", server.status.clone()));
    }
    rows.extend(
        recipe
            .package
            .clone()
            .map(|it| ("package", format!("{it} ({})", recipe.kind.as_str()))),
    );
    if recipe.package.is_some() {
        rows.push((
            "digest",
            way.digest
                .clone()
                .unwrap_or_else(|| "the registry lists none".to_owned()),
        ));
    }
    let words: Vec<String> = entry
        .command
        .iter()
        .chain(&entry.args)
        .map(|it| printable::quote_word(it))
        .collect();
    if !words.is_empty() {
        rows.push(("command", words.join(" ")));
    }
    rows.extend(entry.url.map(|it| ("address", it)));
    let pairs = entry
        .env
        .iter()
        .map(|(name, value)| ("sets", format!("{name}={value}")));
    rows.extend(pairs.filter(|(_, it)| !it.contains("=${")));
    rows.extend(
        entry
            .headers
            .iter()
            .map(|(name, value)| ("header", format!("{name}: {value}"))),
    );
    for variable in &recipe.variables {
        let kind = if variable.secret { "secret" } else { "value" };
        let need = if variable.required { "gets" } else { "may get" };
        rows.push((
            need,
            format!("{} ({kind}): {}", variable.name, variable.what),
        ));
    }
    let others = server.ways.iter().map(|it| it.recipe.kind.as_str());
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

/// The table with `{NAME}` for each value that has no default.
fn open_entry(recipe: &Recipe) -> ServerTable {
    let needed = recipe.parameters.iter().filter(|it| it.args.is_empty());
    let open = needed.map(|it| {
        let shown = it.default.clone();
        (
            it.name.clone(),
            shown.unwrap_or_else(|| format!("{{{}}}", it.name)),
        )
    });
    let values = RecipeValues {
        parameters: open.collect(),
        ..RecipeValues::default()
    };
    recipe.entry(&values).unwrap_or_default()
}
