//! A server to be added by a command.

use files::toml::insert_table;
use serde_json::{Map, Value as Json};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value};
use tool::ServerName;

/// A server to be added. Texts are templates: a plain `$` before a `{` is written `$$`, as
/// [`printable::escape_template`] does. Empty and `None` values are not written to the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewServer {
    /// Lines of a comment above the table, without `#`.
    pub comment: Vec<String>,
    /// The program of a local server; excludes `url`.
    pub command: Option<String>,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment variables.
    pub env: Vec<(String, String)>,
    /// Variables of our environment that are passed on unchanged.
    pub inherit_env: Vec<String>,
    /// The folder it runs in.
    pub cwd: Option<String>,
    /// The address of a remote server.
    pub url: Option<String>,
    /// Headers sent to it.
    pub headers: Vec<(String, String)>,
    /// True if `enabled = false` is written.
    pub is_disabled: bool,
    /// Its category.
    pub category: Option<String>,
    /// Tags by which its tools are found.
    pub tags: Vec<String>,
    /// Advice for the model.
    pub notes: Option<String>,
    /// The timeout of one call, in seconds.
    pub timeout_s: Option<u64>,
    /// The timeout of its start, in seconds.
    pub start_timeout_s: Option<u64>,
    /// True if `scope = "client"` is written: a process for each client.
    pub is_per_client: bool,
    /// Patterns of allowed tools.
    pub allow: Vec<String>,
    /// Patterns of denied tools.
    pub deny: Vec<String>,
    /// Values in its texts that are secret whatever their form, each with the label of its stored secret.
    /// They are written nowhere.
    pub secret_values: Vec<(String, String)>,
    /// An example of the arguments of some of its tools, each a JSON object.
    pub examples: Vec<(String, Json)>,
}

/// Inserts it after the last server, in the form that the file uses for its servers.
pub(super) fn insert(toml: &mut DocumentMut, name: &ServerName, server: &NewServer) {
    insert_table(
        toml,
        "servers",
        name.as_str(),
        table(server),
        &server.comment,
    );
}

/// Inserts a command with these values after the last one.
pub(super) fn insert_command(toml: &mut DocumentMut, name: &str, values: &Map<String, Json>) {
    insert_table(toml, "commands", name, table_of(values), &[]);
}

/// Inserts the table `cluster` at the end.
pub(super) fn insert_cluster(toml: &mut DocumentMut, values: &Map<String, Json>) {
    let mut table = table_of(values);
    if !toml.to_string().trim().is_empty() {
        table.decor_mut().set_prefix("\n");
    }
    toml.insert("cluster", Item::Table(table));
}

fn table_of(values: &Map<String, Json>) -> Table {
    let values = values.iter();
    let values = values.filter_map(|(key, value)| Some((key, Item::Value(of_json(value)?))));
    values.collect()
}

fn table(server: &NewServer) -> Table {
    let mut table = Table::new();
    for (key, value) in values(server) {
        table.insert(key, Item::Value(value));
    }
    for (key, names) in [("allow", &server.allow), ("deny", &server.deny)] {
        if !names.is_empty() {
            dotted(&mut table, "tools").insert(key, Item::Value(array(names)));
        }
    }
    for (tool, arguments) in &server.examples {
        if let Some(example) = of_json(arguments) {
            let overlay = dotted(&mut table, "overlay");
            dotted(overlay, tool).insert("example", Item::Value(example));
        }
    }
    table
}

/// The keys that have a value, in the order of the reference.
fn values(server: &NewServer) -> Vec<(&'static str, Value)> {
    let text = |key, text: &Option<String>| Some((key, Value::from(text.as_ref()?)));
    let list = |key, items: &[String]| (!items.is_empty()).then(|| (key, array(items)));
    let pairs = |key, pairs: &[(String, String)]| {
        let inline: InlineTable = pairs.iter().map(|(name, value)| (name, value)).collect();
        (!pairs.is_empty()).then_some((key, Value::InlineTable(inline)))
    };
    let seconds = |key, count: Option<u64>| {
        let count = i64::try_from(count?).unwrap_or(i64::MAX);
        Some((key, Value::from(count)))
    };
    let written = [
        text("command", &server.command),
        list("args", &server.args),
        pairs("env", &server.env),
        list("inherit_env", &server.inherit_env),
        text("cwd", &server.cwd),
        text("url", &server.url),
        pairs("headers", &server.headers),
        server.is_disabled.then(|| ("enabled", Value::from(false))),
        text("category", &server.category),
        list("tags", &server.tags),
        text("notes", &server.notes),
        seconds("timeout_s", server.timeout_s),
        seconds("start_timeout_s", server.start_timeout_s),
        server
            .is_per_client
            .then(|| ("scope", Value::from("client"))),
    ];
    written.into_iter().flatten().collect()
}

/// Returns the table `name` in it, written `name.key = ...`.
fn dotted<'a>(table: &'a mut Table, name: &str) -> &'a mut Table {
    let inner = table.entry(name).or_insert_with(|| {
        let mut inner = Table::new();
        inner.set_dotted(true);
        Item::Table(inner)
    });
    inner
        .as_table_mut()
        .expect("it is made here, and as a table")
}

fn array(items: &[String]) -> Value {
    Value::Array(items.iter().collect::<Array>())
}

/// TOML has no null: a null member is left out.
fn of_json(json: &Json) -> Option<Value> {
    Some(match json {
        Json::Null => return None,
        Json::Bool(value) => (*value).into(),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64()?.into(),
        },
        Json::String(text) => text.into(),
        Json::Array(items) => Value::Array(items.iter().filter_map(of_json).collect()),
        Json::Object(members) => {
            let members = members.iter();
            let members = members.filter_map(|(name, value)| Some((name, of_json(value)?)));
            Value::InlineTable(members.collect())
        }
    })
}
