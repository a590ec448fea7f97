//! The known clients: `registry/clients.toml`, checked on first use.

use std::sync::LazyLock;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::Format;

const SOURCE: &str = include_str!("../../../registry/clients.toml");

/// Returns every known client, in the order of the table.
pub fn list() -> &'static [ClientProgram] {
    static ALL: LazyLock<Vec<ClientProgram>> = LazyLock::new(|| {
        let table: ClientTable = toml::from_str(SOURCE).expect("a test reads the same text");
        table.clients
    });
    &ALL
}

/// Returns the client with this id or name.
pub fn get(name: &str) -> Option<&'static ClientProgram> {
    let same = |client: &&ClientProgram| {
        client.id.eq_ignore_ascii_case(name) || client.name.eq_ignore_ascii_case(name)
    };
    list().iter().find(same)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClientTable {
    clients: Vec<ClientProgram>,
}

/// A program that lists MCP servers in files of its own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientProgram {
    /// Its name on our command line.
    pub id: String,
    /// The client's name as its vendor writes it.
    pub name: String,
    /// A text that explains when a change of the client's files takes effect.
    pub effect: String,
    /// The client's own program that adds and removes entries of the user's scope.
    pub command: Option<String>,
    pub(crate) marks: Vec<String>,
    #[serde(default)]
    pub(crate) variables: Variables,
    pub(crate) timeout: Option<TimeUnit>,
    #[serde(deserialize_with = "read_entry")]
    entry: Value,
    /// The files that list its servers.
    pub files: Vec<ConfigFile>,
}

/// A file in which a client lists servers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigFile {
    /// The scope of its servers.
    pub scope: EntryScope,
    pub(crate) format: Format,
    /// True if it is read by a parser that accepts no comments.
    #[serde(default)]
    pub(crate) strict: bool,
    /// True if new entries belong in another file, although the client may still read this one.
    #[serde(default)]
    pub(crate) read_only: bool,
    pub(crate) key: Vec<String>,
    #[serde(default)]
    pub(crate) also: Vec<Vec<String>>,
    #[serde(default)]
    pub(crate) list: bool,
    pub(crate) places: Vec<String>,
    #[serde(default)]
    pub(crate) off: Vec<DisabledList>,
}

/// A list of servers that are disabled.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DisabledList {
    /// The path; `None` for the file itself.
    pub(crate) place: Option<String>,
    /// The path to a list of names, or to a table whose entries have `enabled` or `disabled`.
    pub(crate) key: Vec<String>,
    /// True if it names the enabled servers; if it exists, all others are disabled.
    #[serde(default)]
    pub(crate) names_on: bool,
}

/// The scope in which a client starts a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EntryScope {
    /// In every project of the user.
    User,
    /// In one project, listed in the user's own file.
    Local,
    /// In one project, listed in the project, where a team may share it.
    Project,
}

/// The syntax of variables in values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Variables {
    /// None: texts are taken literally.
    #[default]
    None,
    /// Names in braces: `${X}`, `${X:-default}`, `${env:X}`, `${input:id}`, `${workspaceFolder}` and the
    /// like, `{env:X}`, `{file:path}`, `${{ secrets.X }}`.
    Braces,
    /// As `Braces`, and `$X` and `$(command)`, which we never run.
    Dollar,
}

/// The unit of a client's `timeout`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TimeUnit {
    Ms,
    S,
}

impl ClientProgram {
    /// Returns the entry for this program in its files.
    pub fn entry(&self, program: &str, args: &[String]) -> Value {
        fill_in(&self.entry, program, args)
    }
}

/// Reads an entry from JSON, which preserves the order of keys; a TOML table may not.
fn read_entry<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    let text = String::deserialize(deserializer)?;
    serde_json::from_str(&text).map_err(serde::de::Error::custom)
}

fn fill_in(value: &Value, program: &str, args: &[String]) -> Value {
    match value {
        Value::String(text) if text == "{program}" => program.into(),
        Value::Array(items) => {
            let fill = |item: &Value| match item.as_str() {
                Some("{args}") => args.iter().map(|arg| arg.as_str().into()).collect(),
                _ => vec![fill_in(item, program, args)],
            };
            items.iter().flat_map(fill).collect()
        }
        Value::Object(members) => {
            let fill =
                |(key, value): (&String, &Value)| (key.clone(), fill_in(value, program, args));
            Value::Object(members.iter().map(fill).collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::{EntryScope, get, list};

    #[test]
    fn every_client_is_whole() {
        let ids: BTreeSet<&str> = list().iter().map(|client| client.id.as_str()).collect();
        assert_eq!(ids.len(), list().len());
        assert!(ids.len() >= 26, "{}", ids.len());
        for client in list() {
            let user = client
                .files
                .iter()
                .find(|file| file.scope == EntryScope::User);
            assert!(!user.expect("a file to write").read_only, "{}", client.id);
            let entry = client
                .entry("/bin/proxy", &["serve".to_owned()])
                .to_string();
            assert!(
                entry.contains("/bin/proxy") && entry.contains("\"serve\""),
                "{entry}"
            );
            assert!(
                !entry.contains("{args}") && !entry.contains("{program}"),
                "{entry}"
            );
        }
    }

    #[test]
    fn the_entry_is_in_the_clients_own_form() {
        let args = ["--config".to_owned(), "x".to_owned(), "serve".to_owned()];
        let entry = |name: &str| get(name).unwrap().entry("/bin/proxy", &args);
        assert_eq!(
            entry("opencode"),
            json!({"type": "local", "command": ["/bin/proxy", "--config", "x", "serve"]})
        );
        assert_eq!(entry("Goose")["cmd"], "/bin/proxy");
    }
}
