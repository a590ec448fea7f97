//! Checks of the servers' tables in the configuration. No server is started.

use std::collections::BTreeMap;

use fleet::{Failure, Launch, ServerScope, ServerSpec, Template};
use gateway::{ServerSettings, Settings};

use super::{Check, recipe_of};

/// Variables that servers need and that are not set here, each with the place to get its value.
pub fn check_variables(settings: &Settings, is_set: impl Fn(&str) -> Option<String>) -> Vec<Check> {
    let mut checks = Vec::new();
    for server in settings.enabled() {
        let mut unset: Vec<String> = (server.spec.launch.texts().iter())
            .filter_map(|(_, text)| missing_in(text, &is_set))
            .collect();
        unset.sort();
        unset.dedup();
        let recipe = recipe_of(&server.spec.launch);
        for name in unset {
            let known = recipe.and_then(|it| it.variables.iter().find(|it| it.name == name));
            let origin = known.and_then(|variable| variable.origin.as_ref());
            let origin = origin.map_or(String::new(), |origin| format!(" (from {origin})"));
            let about = format!("server {}", server.spec.name);
            let check = Check::problem(about, format!("variable `{name}` is not set"));
            checks.push(check.then(format!(
                "export {name}=...{origin} in the environment that starts the client"
            )));
        }
    }
    checks
}

/// The unset variables that a text needs. Secrets are checked elsewhere.
fn missing_in(text: &Template, is_set: impl Fn(&str) -> Option<String>) -> Option<String> {
    let references: Vec<&str> = text.references().map(|(text, _)| text).collect();
    let lookup = |name: &str| {
        if references.contains(&name) {
            Some(name.to_owned())
        } else {
            is_set(name)
        }
    };
    text.expand(lookup).err().map(|unset| unset.0)
}

/// Finds servers that are configured twice.
pub fn check_twins(settings: &Settings) -> Vec<Check> {
    let mut by_start: BTreeMap<String, &ServerSettings> = BTreeMap::new();
    let mut checks = Vec::new();
    for server in settings.enabled() {
        let start = format!("{:?}", server.spec.launch);
        if let Some(first) = by_start.get(&start) {
            let (first, second) = (&first.spec.name, &server.spec.name);
            let found = format!(
                "has the same command or address as server {first}: each of its tools exists twice"
            );
            let check = Check::warning(format!("server {second}"), found);
            checks.push(check.then(format!("proxy remove {second}")));
        } else {
            by_start.insert(start, server);
        }
    }
    checks
}

/// Finds arguments that only a shell would expand: servers are started without a shell.
pub fn check_arguments(settings: &Settings) -> Vec<Check> {
    let mut checks = Vec::new();
    for server in settings.enabled() {
        let Launch::Child { command, args, .. } = &server.spec.launch else {
            continue;
        };
        let command = command.to_string();
        let program = command.rsplit('/').next().unwrap_or_default();
        if SHELLS.contains(&program) {
            continue;
        }
        let args = args.iter().map(Template::to_string);
        let unread: Vec<(String, String)> = args.filter_map(|arg| of_a_shell(&arg)).collect();
        for (written, instead) in unread {
            let found = format!(
                "`args` contains `{written}`, which is not expanded, because no shell starts the server"
            );
            let check = Check::warning(format!("server {}", server.spec.name), found);
            checks.push(check.then(format!("write `{instead}`")));
        }
    }
    checks
}

/// Programs that expand their arguments as a shell does.
const SHELLS: [&str; 5] = ["sh", "bash", "dash", "zsh", "fish"];

/// Finds `~/` or `$NAME` in an argument, and returns it with its form in a configuration.
fn of_a_shell(arg: &str) -> Option<(String, String)> {
    let value = arg.rsplit_once('=').map_or(arg, |(_, value)| value);
    if value == "~" || value.starts_with("~/") {
        return Some(("~".to_owned(), "${HOME}".to_owned()));
    }
    // A template writes a `$` that begins no variable as `$$`.
    arg.match_indices("$$").find_map(|(at, sign)| {
        let rest = &arg[at + sign.len()..];
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let name = &rest[..rest.find(|c| !is_name(c)).unwrap_or(rest.len())];
        let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        begins.then(|| (format!("${name}"), format!("${{{name}}}")))
    })
}

/// Finds addresses and packages that have a replacement.
pub fn check_addresses(settings: &Settings) -> Vec<Check> {
    let replaced = |server: &ServerSettings| {
        let names = match &server.spec.launch {
            Launch::Remote { url, .. } => vec![url.plain()?],
            Launch::Child { args, .. } => args.iter().filter_map(fleet::Template::plain).collect(),
            Launch::Commands(_) => return None,
        };
        let (old, recipe) = names
            .iter()
            .find_map(|name| Some((name, recipes::replacement(name)?)))?;
        let now = match &recipe.way {
            recipes::StartMethod::Remote { url, .. } => url.clone(),
            recipes::StartMethod::Command(command) => command.join(" "),
        };
        let (what, next) = match &server.spec.launch {
            Launch::Remote { .. } => ("address", format!("write `url = {now:?}`")),
            _ => (
                "package",
                format!("proxy add --list {}: {now}", recipe.name()),
            ),
        };
        let about = format!("server {}", server.spec.name);
        let old = old.split('?').next().unwrap_or_default();
        Some(Check::warning(about, format!("{what} {old} is deprecated")).then(next))
    };
    settings.enabled().filter_map(replaced).collect()
}

/// Finds programs that are missing, one check per program; and servers that hold one client's state but
/// are shared.
pub fn check_commands(
    settings: &Settings,
    is_set: impl Fn(&str) -> Option<String>,
    find: impl Fn(&ServerSpec) -> Result<(), Failure>,
) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut lacking: BTreeMap<String, (Failure, Vec<&ServerSpec>)> = BTreeMap::new();
    for server in settings.enabled() {
        let about = format!("server {}", server.spec.name);
        // A missing variable is already reported.
        let texts = server.spec.launch.texts();
        let mut missing = texts
            .iter()
            .filter_map(|(_, text)| missing_in(text, &is_set));
        let is_whole = missing.next().is_none();
        if is_whole && let Err(failure) = find(&server.spec) {
            let why = failure.to_string();
            let (_, servers) = lacking.entry(why).or_insert((failure, Vec::new()));
            servers.push(&server.spec);
        }
        let recipe = recipe_of(&server.spec.launch);
        let is_private = recipe.is_some_and(|it| it.scope == recipes::RecipeScope::Client);
        if is_private && server.spec.scope == ServerScope::Shared {
            let found = "keeps the state of one client (a browser, a folder), but is shared by all";
            let next = format!(
                "write `scope = \"client\"` below [servers.{}]",
                server.spec.name
            );
            checks.push(Check::warning(about, found).then(next));
        }
    }
    checks.extend(lacking.into_values().map(describe_lacking));
    checks
}

fn describe_lacking((failure, servers): (Failure, Vec<&ServerSpec>)) -> Check {
    let why = failure.to_string();
    let check = match servers.as_slice() {
        [one] => Check::problem(format!("server {}", one.name), why),
        several => {
            let names: Vec<&str> = several.iter().map(|spec| spec.name.as_str()).collect();
            let found = format!("{why}: it starts {}", names.join(", "));
            Check::problem("servers", found)
        }
    };
    match failure.hint {
        Some(hint) => check.then(hint),
        None => check,
    }
}
