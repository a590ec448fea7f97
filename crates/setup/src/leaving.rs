//! The configured servers as entries for a client, for a person who leaves. No value of a secret is
//! written: a variable stands in its place.

use config::{Config, edit::Document};
use fleet::Template;
use gateway::ServerSettings;
use printable::{FoundSecret, find_secrets, find_secrets_in_arguments, replace_secrets};
use serde_json::{Map, Value, json};

/// Keys of a server that an entry has too.
const KEYS: [&str; 8] = [
    "command",
    "args",
    "env",
    "inherit_env",
    "cwd",
    "url",
    "headers",
    "enabled",
];

/// Tables of the file that change calls for every client.
const OWN_TABLES: [&str; 2] = ["rules", "clients"];

/// The entries, and what they do not say.
#[derive(Debug)]
pub struct Entries {
    /// A whole file, in JSON or TOML.
    pub text: String,
    /// Remarks for the person, a sentence each.
    pub remarks: Vec<String>,
}

/// Writes the enabled servers as entries of a client: as `mcpServers` in JSON, or as Codex reads them, in
/// TOML.
pub fn write_entries(config: &Config, document: &Document, is_toml: bool) -> Entries {
    let (mut remarks, mut entries) = (Vec::new(), Map::new());
    for server in &config.gateway.servers {
        let name = server.spec.name.as_str();
        if !server.enabled {
            remarks.push(format!("{name}: not printed, because it is disabled"));
            continue;
        }
        let mut writer = EntryWriter {
            name,
            is_toml,
            secrets: 0,
            remarks: &mut remarks,
        };
        let entry = writer.write(server, document.keys(Some(name)));
        entries.insert(name.to_owned(), entry);
    }
    let mut lost = document.keys(None);
    lost.retain(|key| OWN_TABLES.contains(&key.as_str()));
    remarks.extend(describe_lost(&lost));
    let text = if is_toml {
        toml::to_string(&json!({"mcp_servers": entries})).unwrap_or_default()
    } else {
        format!("{:#}", json!({"mcpServers": entries}))
    };
    Entries { text, remarks }
}

fn describe_lost(keys: &[String]) -> Option<String> {
    let lost = || {
        format!(
            "not printed, because clients have none: {}",
            keys.join(", ")
        )
    };
    (!keys.is_empty()).then(lost)
}

struct EntryWriter<'a> {
    name: &'a str,
    is_toml: bool,
    /// The number of variables that this made.
    secrets: usize,
    remarks: &'a mut Vec<String>,
}

impl EntryWriter<'_> {
    fn write(&mut self, server: &ServerSettings, mut keys: Vec<String>) -> Value {
        let launch = server.spec.launch.texts().into_iter();
        let texts: Vec<(String, String)> = launch
            .map(|(key, template)| (self.fill(&key, template), key))
            .collect();
        let args = texts.iter().filter(|(_, key)| key == "args");
        let mut in_args =
            find_secrets_in_arguments(args.map(|(text, _)| text.as_str())).into_iter();
        let (mut entry, mut args) = (json!({}), Vec::new());
        for (text, key) in &texts {
            match key.split_once('.') {
                Some((table, name)) => {
                    entry[table][name] =
                        self.hide(key, text, &find_secrets(text, Some(name))).into();
                }
                None if key == "args" => {
                    args.push(self.hide(key, text, &in_args.next().unwrap_or_default()));
                }
                None => entry[key] = self.hide(key, text, &find_secrets(text, None)).into(),
            }
        }
        for name in &server.spec.inherit_env {
            if name.contains('*') {
                self.remark(&format!(
                    "write the variables of inherit_env = [{name:?}] one by one"
                ));
            } else if entry["env"][name].is_null() {
                entry["env"][name] = format!("${{{name}}}").into();
            }
        }
        let is_remote = !entry["url"].is_null();
        if !is_remote {
            entry["args"] = args.into();
        }
        if self.is_toml {
            self.convert_for_codex(&mut entry);
        } else {
            entry["type"] = if is_remote { "http" } else { "stdio" }.into();
        }
        if let Some(members) = entry.as_object_mut() {
            members.retain(|_, value| !value.is_null() && *value != json!({}));
        }
        keys.retain(|key| !KEYS.contains(&key.as_str()));
        if let Some(lost) = describe_lost(&keys) {
            self.remark(&lost);
        }
        entry
    }

    /// Names headers, and the variables that are passed on, as Codex does.
    fn convert_for_codex(&mut self, entry: &mut Value) {
        let headers = entry["headers"].take();
        entry["http_headers"] = headers;
        if let Some(env) = entry["env"].as_object_mut() {
            let is_passed = |name: &str, value: &Value| *value == format!("${{{name}}}");
            let passed = env.iter().filter(|(name, value)| is_passed(name, value));
            let passed: Vec<String> = passed.map(|(name, _)| name.clone()).collect();
            env.retain(|name, value| !is_passed(name, value));
            entry["env_vars"] = passed.into();
        }
        if entry.to_string().contains("${") {
            self.remark("Codex fills in no `${...}`; write these values by hand");
        }
    }

    /// Returns a text as clients read it: each reference to a secret becomes a variable.
    fn fill(&mut self, key: &str, template: &Template) -> String {
        if template.plain().is_some_and(|text| text.contains("${")) {
            self.remark(&format!(
                "`{key}` has a literal `${{`, which clients take for a variable"
            ));
        }
        let mut text = template.to_string().replace("$$", "$");
        for (reference, _) in template.references() {
            // The words of a command may have a secret.
            let is_command = reference.starts_with("command:");
            let shown = if is_command { "command:..." } else { reference };
            let value = format!("the value of ${{{shown}}}");
            let variable = self.next_variable(None, &value);
            text = text.replacen(&format!("${{{reference}}}"), &variable, 1);
        }
        text
    }

    /// Replaces secrets in clear text by variables.
    fn hide(&mut self, key: &str, text: &str, found: &[FoundSecret]) -> String {
        let value = format!("the secret in `{key}` of the configuration");
        replace_secrets(text, found, |secret| {
            let own = key.strip_prefix("env.");
            let own = own.filter(|_| secret.range == (0..text.len()));
            self.next_variable(own, &value)
        })
    }

    /// Returns a reference to the variable that the person has to set.
    fn next_variable(&mut self, own: Option<&str>, value: &str) -> String {
        let name = if let Some(own) = own {
            own.to_owned()
        } else {
            self.secrets += 1;
            let server = self.name.to_ascii_uppercase().replace('-', "_");
            format!("{server}_SECRET_{}", self.secrets)
        };
        self.remark(&format!("set {name} to {value}"));
        format!("${{{name}}}")
    }

    fn remark(&mut self, remark: &str) {
        self.remarks.push(format!("{}: {remark}", self.name));
    }
}

#[cfg(test)]
mod tests {
    use config::{Environment, Overrides};

    use super::*;

    const FILE: &str = r#"
rules = [{ decision = "deny", server = "gh" }]

[servers.gh]
command = "/bin/gh-mcp"
args = ["--token", "opensesame", "--secret", "mellon", "$${x}"]
env = { GH_TOKEN = "ghp_0123456789abcdef", URL = "https://${HOST:-a}/", DB = "${secret:db-key}" }
inherit_env = ["HTTP_PROXY", "AWS_*"]
cwd = "/srv"
timeout_s = 90
sandbox = {}

[servers.linear]
url = "https://mcp.linear.app/mcp?key=qwertyuiop"
headers = { Authorization = "Bearer ${LINEAR}", X-Api-Key = "${file:/run/key}" }

[servers.off]
command = "/bin/off"
enabled = false
"#;

    fn entries(is_toml: bool) -> Entries {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("proxy.toml");
        std::fs::write(&file, FILE).unwrap();
        let overrides = Overrides {
            config: Some(file.clone()),
            state_dir: Some(home.path().join("state")),
            ..Overrides::default()
        };
        let config = config::load(&overrides, &Environment::of_process());
        let config = config.unwrap_or_else(|error| panic!("{error}"));
        let entries = write_entries(&config, &Document::read(&file).unwrap(), is_toml);
        let all = format!("{entries:?}");
        for secret in ["opensesame", "mellon", "ghp_", "qwertyuiop"] {
            assert!(!all.contains(secret), "{all}");
        }
        entries
    }

    #[test]
    fn entries_have_variables_in_place_of_secrets() {
        let Entries { text, remarks } = entries(false);
        let read: Value = serde_json::from_str(&text).unwrap();
        let expected = json!({"mcpServers": {
            "gh": {
                "type": "stdio", "command": "/bin/gh-mcp",
                "args": ["--token", "${GH_SECRET_2}", "--secret", "${GH_SECRET_3}", "${x}"],
                "env": {
                    "DB": "${GH_SECRET_1}", "GH_TOKEN": "${GH_TOKEN}", "URL": "https://${HOST:-a}/",
                    "HTTP_PROXY": "${HTTP_PROXY}",
                },
                "cwd": "/srv",
            },
            "linear": {
                "type": "http", "url": "https://mcp.linear.app/mcp?key=${LINEAR_SECRET_2}",
                "headers": {"Authorization": "Bearer ${LINEAR}", "X-Api-Key": "${LINEAR_SECRET_1}"},
            },
        }});
        assert_eq!(read, expected);
        for remark in [
            "gh: `args` has a literal `${`",
            "gh: set GH_SECRET_1 to the value of ${secret:db-key}",
            "gh: set GH_SECRET_2 to the secret in `args` of the configuration",
            "gh: set GH_TOKEN to the secret in `env.GH_TOKEN`",
            "gh: write the variables of inherit_env = [\"AWS_*\"]",
            "gh: not printed, because clients have none: timeout_s, sandbox",
            "linear: set LINEAR_SECRET_1 to the value of ${file:/run/key}",
            "off: not printed",
            "not printed, because clients have none: rules",
        ] {
            let is_it = |it: &String| it.starts_with(remark);
            assert!(remarks.iter().any(is_it), "{remark}: {remarks:#?}");
        }
    }

    #[test]
    fn codex_names_variables_and_headers_in_its_own_way() {
        let Entries { text, remarks } = entries(true);
        let read: toml::Table = text.parse().unwrap();
        let expected: toml::Table = r#"
            [mcp_servers.gh]
            command = "/bin/gh-mcp"
            args = ["--token", "${GH_SECRET_2}", "--secret", "${GH_SECRET_3}", "${x}"]
            env_vars = ["GH_TOKEN", "HTTP_PROXY"]
            env = { DB = "${GH_SECRET_1}", URL = "https://${HOST:-a}/" }
            cwd = "/srv"
            [mcp_servers.linear]
            url = "https://mcp.linear.app/mcp?key=${LINEAR_SECRET_2}"
            http_headers = { Authorization = "Bearer ${LINEAR}", X-Api-Key = "${LINEAR_SECRET_1}" }
        "#
        .parse()
        .unwrap();
        assert_eq!(read, expected);
        for server in ["gh", "linear"] {
            let by_hand = format!("{server}: Codex fills in no `${{...}}`");
            let is_it = |it: &String| it.starts_with(&by_hand);
            assert!(remarks.iter().any(is_it), "{remarks:#?}");
        }
    }
}
