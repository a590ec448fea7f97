//! `docs/configuration.md`, generated from the table of keys.

use super::{
    keys::{KEYS, Key, Kind},
    rules, variables,
};

/// The text around the tables. `{{TABLE}}` is replaced by the keys of that table.
const TEXT: &str = include_str!("docs.md");

/// The whole page. A test keeps the committed one equal to it.
pub fn docs() -> String {
    let mut page = TEXT.replace("{{}}", &table(""));
    for name in [
        "results",
        "audit",
        "traces",
        "reindex",
        "search",
        "http",
        "clients.NAME",
        "daemon",
        "servers.NAME",
        "servers.NAME.overlay.TOOL",
    ] {
        page = page.replace(&format!("{{{{{name}}}}}"), &table(name));
    }
    page.replace("{{variables}}", &variable_table())
}

/// The keys of a table, with those of a table in it that is too small for a section.
fn table(name: &str) -> String {
    let inside = ["tools", "oauth", "sandbox"].map(|table| format!("{name}.{table}"));
    let keys = KEYS
        .iter()
        .filter(|key| key.table() == name || inside.iter().any(|it| it == key.table()));
    let head = "| key | what it holds | default | meaning |\n|---|---|---|---|";
    keys.fold(head.to_owned(), |table, key| {
        format!("{table}\n{}", row(name, key))
    })
}

fn row(table: &str, key: &Key) -> String {
    let name = key
        .path
        .strip_prefix(table)
        .unwrap_or(key.path)
        .trim_start_matches('.');
    let default = key
        .default
        .map_or(String::new(), |default| format!("`{default}`"));
    format!(
        "| `{name}` | {} | {default} | {} |",
        holds(&key.kind),
        key.meaning
    )
}

fn variable_table() -> String {
    let keys = KEYS.iter().filter(|key| key.variable);
    let head = "| variable | key |\n|---|---|";
    keys.fold(head.to_owned(), |table, key| {
        format!(
            "{table}\n| `{}` | `{}` |",
            variables::name_of(key),
            key.path
        )
    })
}

fn holds(kind: &Kind) -> String {
    match kind {
        Kind::Count(count) => format!("number, {} to {} {}", count.min, count.max, count.unit),
        Kind::List(item) => format!("list of: {}", holds(item)),
        Kind::Choice(words) => rules::choices(words),
        other => String::from(match other {
            Kind::Template => "text with `${VAR}`",
            Kind::Command => "program, with `${VAR}`",
            Kind::Url => "address with `http://` or `https://`, with `${VAR}`",
            Kind::Folder => "folder, with `${VAR}`",
            Kind::StateDir => "folder",
            Kind::Filter => "filter",
            Kind::Category => "word of `a-z`, `0-9`, `-`, at most 32",
            Kind::Tag => "text without comma, at most 32 characters",
            Kind::Inherited => "name of a variable, with `*` at its end for any rest",
            Kind::Glob => "pattern with `*`, `?`, `{a,b}`",
            Kind::Switch => "`true` or `false`",
            Kind::Variables => "table: variable = text with `${VAR}`",
            Kind::Headers => "table: header = text with `${VAR}`",
            Kind::Tokens => "table: name = text with `${VAR}`",
            Kind::TokenFiles => "table: name = file, with `${VAR}`",
            Kind::File => "file, with `${VAR}`",
            Kind::Listen => "address and port, or a port",
            Kind::Host => "name or address, with a port or without",
            Kind::Origin => "`https://HOST` or `http://HOST`, with a port where it has one",
            Kind::Arguments => "table, made JSON",
            Kind::Rules => "tables, one a rule: see below",
            _ => "text",
        }),
    }
}
