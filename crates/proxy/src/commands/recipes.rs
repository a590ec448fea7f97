//! `proxy add --list`: the servers that have a built-in recipe, or those of a registry.

use std::collections::{BTreeMap, BTreeSet};

use recipes::{
    Alternative, Auth, Distribution, Parameter, Recipe, RecipeScope, RecipeValues, ServerTable,
    StartMethod, Variable,
};
use serde_json::{Value, json};

use self::listed::way_json;
use crate::{
    cli::global::Global,
    exit::Exit,
    report,
    table::{render_rows, wrap},
};

/// Prints one recipe per line, the best first; or all of one, if the words are its name.
pub(super) fn print_recipes(global: &Global, words: &[String]) -> Exit {
    let asked = words.join(" ");
    let named = recipes::find(&asked);
    let found = named.map_or_else(|| recipes::search(&asked), |recipe| vec![recipe]);
    if global.json {
        let found: Vec<Value> = found.iter().map(|recipe| to_json(recipe)).collect();
        report::print_json(&Value::Array(found));
    } else if let Some(recipe) = named {
        report::print_data(&render_whole(recipe));
    } else if !found.is_empty() {
        report::print_data(&render_list(&found));
    }
    if found.is_empty() {
        report::say(&format!(
            "no recipe matches `{asked}`\nhint: `proxy add --list` lists all {}; `proxy add` adds any other server by its command or address",
            recipes::all().len()
        ));
    }
    Exit::of_hit(!found.is_empty())
}

/// Renders one line per recipe: name, kind, what it offers, what it needs.
fn render_list(found: &[&Recipe]) -> String {
    let row = |recipe: &&Recipe| {
        [
            recipe.name().to_owned(),
            recipe.kind.as_str().to_owned(),
            recipe.what.clone(),
            summarise_needs(recipe),
        ]
    };
    render_rows(found.iter().map(row).collect())
}

fn summarise_needs(recipe: &Recipe) -> String {
    if let Some(instead) = &recipe.deprecated {
        return format!("no longer maintained: use {instead}");
    }
    let parameters = recipe.missing(&BTreeMap::new());
    let parameters = parameters.iter().map(|parameter| parameter.name.clone());
    let variables = recipe.required().map(|variable| variable.name.clone());
    let mut needs: Vec<String> = parameters.chain(variables).collect();
    if recipe.auth == Auth::OAuth {
        needs.push("a login".to_owned());
    }
    needs.extend(recipe.needs.iter().cloned());
    match needs.as_slice() {
        [] => String::new(),
        needs => format!("needs {}", needs.join(", ")),
    }
}

fn render_whole(recipe: &Recipe) -> String {
    let known = &recipe.known;
    let mut rows: Vec<(&str, String)> = Vec::new();
    let names = [&known.aliases[..], &known.names[..]].concat();
    rows.push(("also", names.join(", ")));
    let about = format!("{}: {}", known.category, known.tags.join(", "));
    rows.push(("about", about));
    rows.push(("for", recipe.verbs.join(", ")));
    if let Some(package) = &recipe.package {
        let kind = recipe.kind.as_str();
        rows.push(("package", format!("{package} ({kind})")));
    }
    rows.push(("takes", describe_login(recipe)));
    rows.extend((recipe.parameters.iter()).map(|it| ("choose", describe_parameter(it))));
    rows.extend((recipe.variables.iter()).map(|it| ("variable", describe_variable(it))));
    rows.push(("needs", list_needs(recipe).join(", ")));
    for pin in &recipe.pins {
        let text = format!("{}: {} ({})", pin.with, pin.why, pin.checked);
        rows.push(("pinned", text));
    }
    rows.push(("notes", recipe.notes.clone()));
    if let Some(example) = &recipe.example {
        let arguments = Value::Object(example.arguments.clone());
        rows.push(("example", format!("{} {arguments}", example.tool)));
    }
    rows.extend((recipe.alternatives.iter()).map(|it| ("or", describe_alternative(it))));
    if let Some(instead) = &recipe.deprecated {
        rows.push(("instead", format!("no longer maintained: use {instead}")));
    }
    rows.push(("checked", describe_check(recipe)));
    let rows = rows.iter().filter(|(_, text)| !text.is_empty());
    let rows = rows.map(|(label, text)| wrap(&format!("  {label:8}  {text}"), 10));
    let lines: Vec<String> = rows.collect();
    format!(
        "{}\n{}\n\n{}",
        wrap(&format!("{}: {}", recipe.name(), recipe.what), 2),
        lines.join("\n"),
        render_entry(recipe),
    )
}

fn describe_parameter(parameter: &Parameter) -> String {
    let default = match &parameter.default {
        Some(text) => format!(" [default: {text}]"),
        None if !parameter.args.is_empty() => " [may be left out]".to_owned(),
        None => String::new(),
    };
    format!("{}: {}{default}", parameter.name, parameter.what)
}

fn describe_login(recipe: &Recipe) -> String {
    match (recipe.auth, recipe.kind) {
        (Auth::None, _) => String::new(),
        (Auth::Env, _) => "values of variables".to_owned(),
        (Auth::Header, _) => "a token".to_owned(),
        (Auth::OAuth, Distribution::Remote) => {
            let by_token = !recipe.variables.is_empty();
            let or = if by_token { ", or a token" } else { "" };
            format!("a login in a browser (OAuth){or}")
        }
        (Auth::OAuth, _) => "a login of its own, once".to_owned(),
    }
}

fn describe_variable(variable: &Variable) -> String {
    let required = if variable.required { "" } else { "optional " };
    let secret = if variable.secret { "secret, " } else { "" };
    let origin = variable.origin.as_ref();
    let origin = origin.map_or(String::new(), |origin| format!("; from {origin}"));
    format!(
        "{required}{}: {secret}{}{origin}",
        variable.name, variable.what
    )
}

fn list_needs(recipe: &Recipe) -> Vec<String> {
    let program = match recipe.kind {
        Distribution::Npm => Some(format!("Node.js {}", recipe.node.as_deref().unwrap_or(""))),
        Distribution::PyPi => Some("uv".to_owned()),
        Distribution::Docker => Some("Docker".to_owned()),
        Distribution::Remote => None,
    };
    let python = recipe.python.as_ref();
    let python = python.map(|range| format!("Python {range}"));
    let others = recipe.needs.iter().cloned();
    program.into_iter().chain(python).chain(others).collect()
}

fn describe_alternative(alternative: &Alternative) -> String {
    let way = match &alternative.way {
        StartMethod::Command(command) => command.join(" "),
        StartMethod::Remote { url, .. } => url.clone(),
    };
    let variables = match alternative.variables.as_slice() {
        [] => String::new(),
        variables => format!(" with {}", variables.join(", ")),
    };
    format!("{way}{variables} ({})", alternative.why)
}

/// Describes the result of the last check of a recipe, or says that it was not started.
fn describe_check(recipe: &Recipe) -> String {
    let day = &recipe.checked;
    let newest = recipe.newest.as_ref();
    let newest = newest.map_or(String::new(), |newest| format!("; there is a {newest}"));
    match (&recipe.started, &recipe.not_started, &recipe.source) {
        (Some(started), _, _) => format!(
            "{day}: {} has {}{newest}",
            started.version,
            printable::count_of(started.tools, "tool"),
        ),
        (None, Some(why), _) => format!("{day}: did not start: {why}"),
        (None, None, Some(source)) => format!("not by us; according to {source} ({day})"),
        (None, None, None) => format!("not by us ({day})"),
    }
}

/// Returns the table of the configuration, with `{NAME}` in place of each choice.
pub(super) fn open_entry(recipe: &Recipe, variables: BTreeSet<String>) -> ServerTable {
    let parameters = recipe.parameters.iter();
    let chosen = parameters.filter(|it| it.args.is_empty()).map(|it| {
        let default = it.default.clone();
        let open = format!("{{{}}}", it.name);
        (it.name.clone(), default.unwrap_or(open))
    });
    let given = RecipeValues {
        parameters: chosen.collect(),
        variables,
    };
    recipe.entry(&given).unwrap_or_default()
}

fn render_entry(recipe: &Recipe) -> String {
    let variables = recipe.variables.iter();
    let entry = open_entry(recipe, variables.map(|it| it.name.clone()).collect());
    let env = render_map("env", &entry.env);
    let headers = render_map("headers", &entry.headers);
    let mut lines = vec![format!("[servers.{}]", recipe.name())];
    lines.extend((entry.command).map(|command| format!("command = {command:?}")));
    if !entry.args.is_empty() {
        lines.push(format!("args = {:?}", entry.args));
    }
    lines.extend(entry.url.map(|url| format!("url = {url:?}")));
    lines.extend(entry.scope.map(|scope| format!("scope = {scope:?}")));
    lines.extend((entry.start_timeout_s).map(|s| format!("start_timeout_s = {s}")));
    lines.extend(env.into_iter().chain(headers));
    lines.join("\n")
}

fn render_map(key: &str, map: &BTreeMap<String, String>) -> Option<String> {
    let members = map.iter().map(|(name, text)| format!("{name} = {text:?}"));
    let members: Vec<String> = members.collect();
    (!members.is_empty()).then(|| format!("{key} = {{ {} }}", members.join(", ")))
}

fn to_json(recipe: &Recipe) -> Value {
    let known = &recipe.known;
    let variable = |it: &Variable| {
        json!({
            "name": it.name, "required": it.required, "secret": it.secret,
            "what": it.what, "where": it.origin,
        })
    };
    let alternative = |it: &Alternative| json!({"way": way_json(&it.way), "variables": it.variables, "why": it.why, "tools": it.tools});
    let parameter = |it: &Parameter| json!({"name": it.name, "what": it.what, "default": it.default, "args": it.args});
    let pin = |it: &recipes::Pin| json!({"with": it.with, "why": it.why, "checked": it.checked});
    let example = recipe.example.as_ref();
    let started = recipe.started.as_ref();
    json!({
        "name": recipe.name(),
        "what": recipe.what,
        "kind": recipe.kind.as_str(),
        "package": recipe.package,
        "way": way_json(&recipe.way),
        "env": recipe.env,
        "auth": recipe.auth.as_str(),
        "scope": if recipe.scope == RecipeScope::Client { "client" } else { "shared" },
        "start_timeout_s": recipe.start_timeout_s,
        "variables": recipe.variables.iter().map(variable).collect::<Vec<_>>(),
        "parameters": recipe.parameters.iter().map(parameter).collect::<Vec<_>>(),
        "pins": recipe.pins.iter().map(pin).collect::<Vec<_>>(),
        "node": recipe.node,
        "python": recipe.python,
        "needs": recipe.needs,
        "category": known.category,
        "tags": known.tags,
        "aliases": known.aliases,
        "names": known.names,
        "verbs": recipe.verbs,
        "notes": recipe.notes,
        "example": example.map(|it| json!({"tool": it.tool, "arguments": it.arguments})),
        "alternatives": recipe.alternatives.iter().map(alternative).collect::<Vec<_>>(),
        "deprecated": recipe.deprecated,
        "replaces": recipe.replaces,
        "source": recipe.source,
        "checked": recipe.checked,
        "started": started.map(|it| json!({"version": it.version, "tools": it.tools})),
        "newest": recipe.newest,
        "not_started": recipe.not_started,
    })
}

pub(super) mod listed;
#[cfg(test)]
mod tests;
