//! `docs/configuration.md`, generated from the table of keys.

use std::collections::BTreeSet;

use super::{
    keys::{KEYS, KeySpec, ValueKind},
    rules,
    variables::variable_of,
};

/// The text around the tables. `{{TABLE}}` is replaced by the keys of that table.
const TEXT: &str = include_str!("docs.md");

/// The JSON Schema of the file. A test keeps it equal to the table of keys.
pub const SCHEMA: &str = include_str!("../../../config/schema.json");

/// The name of the file with the schema beside the configuration.
pub const SCHEMA_FILE: &str = "schema.json";

/// The whole page. A test keeps the committed one equal to it.
pub fn docs() -> String {
    let mut page = TEXT.to_owned();
    for name in KEYS.iter().map(KeySpec::table).collect::<BTreeSet<_>>() {
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
    let head = "| key | value | default | meaning |\n|---|---|---|---|";
    keys.fold(head.to_owned(), |table, key| {
        format!("{table}\n{}", row(name, key))
    })
}

fn row(table: &str, key: &KeySpec) -> String {
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
        let variable = variable_of(key.path);
        format!("{table}\n| `{variable}` | `{}` |", key.path)
    })
}

fn holds(kind: &ValueKind) -> String {
    match kind {
        ValueKind::Count(count) => format!("number, {} to {} {}", count.min, count.max, count.unit),
        ValueKind::List(item) => format!("list of: {}", holds(item)),
        ValueKind::Choice(words) => rules::choices(words),
        other => String::from(match other {
            ValueKind::Template => "text with `${VAR}`",
            ValueKind::Command => "program, with `${VAR}`",
            ValueKind::Url => "address with `http://` or `https://`, with `${VAR}`",
            ValueKind::Folder => "folder, with `${VAR}`",
            ValueKind::StateDir => "folder",
            ValueKind::Filter => "filter",
            ValueKind::Category => "word of `a-z`, `0-9`, `-`, at most 32 characters",
            ValueKind::Tag => "text without comma, at most 32 characters",
            ValueKind::Version => "version number, such as `1.4.0`",
            ValueKind::Inherited => "name of a variable; a final `*` matches any rest",
            ValueKind::Glob => "pattern with `*`, `?`, `{a,b}`",
            ValueKind::Switch => "`true` or `false`",
            ValueKind::Variables => "table: variable = text with `${VAR}`",
            ValueKind::Headers => "table: header = text with `${VAR}`",
            ValueKind::Tokens => "table: name = text with `${VAR}`",
            ValueKind::Patterns => "table: name = regular expression",
            ValueKind::TokenFiles => "table: name = file, with `${VAR}`",
            ValueKind::File => "file, with `${VAR}`",
            ValueKind::Listen => "address and port, or a port",
            ValueKind::ClusterName => "lower-case letters, digits, `-`",
            ValueKind::Host => "name or address, with or without a port",
            ValueKind::Origin => "`https://HOST` or `http://HOST`, with its port, if any",
            ValueKind::Arguments => "table, converted to JSON",
            ValueKind::ArgumentSettings => {
                "table of `{ fixed = VALUE }`, `{ default = VALUE }` or `{ hidden = true }`"
            }
            ValueKind::Rules | ValueKind::Quotas => "tables, one each: see below",
            _ => "text",
        }),
    }
}
