//! Reads the text of the file against the table of keys. It never stops at a mistake: the value is
//! reported and left out, and the rest is read.

use fleet::{CommandTool, TIMEOUT_DEFAULT};
use serde_json::{Map, Value};
use toml::de::{DeTable, DeValue};
use tool::{NameError, SERVER_NAME_CHARS_MAX, ServerName};

use super::{
    keys::{self, KeyMatch, KeySpec, ValueKind},
    layers::Layer,
    lines::LineIndex,
    mistake::Fault,
    rules,
};
use walk::{At, Name, PlacedFault, SpannedValue, Walk, as_written, in_order};

mod syntax;
mod values;
mod walk;

/// Returns the values of the file, as far as it could be read, and its mistakes.
pub(super) fn check(text: &str) -> Layer {
    let (table, errors) = DeTable::parse_recoverable(text);
    let lines = LineIndex::new(text);
    let commands = table.get_ref().get("commands").map(SpannedValue::get_ref);
    let mut walk = Walk {
        has_commands: matches!(commands, Some(DeValue::Table(all)) if !all.is_empty()),
        ..Walk::default()
    };
    let top = At::default();
    let mut values = walk.read_table(&top, table.get_ref());
    if walk.has_commands {
        // All commands are one server.
        let servers = values.entry("servers").or_insert_with(|| Map::new().into());
        if let Value::Object(servers) = servers {
            let commands = servers.entry(ServerName::commands().as_str());
            commands.or_insert_with(|| Map::new().into());
        }
    }
    let broken = syntax::Broken::new(text, &lines, errors);
    let mut noted = broken.keep_independent(walk.noted);
    noted.extend(broken.noted);
    noted.sort_by_key(|noted| noted.byte);
    let starts = walk.starts.into_iter();
    let places = starts.map(|(key, byte)| (key, lines.place(byte))).collect();
    let located = |noted: PlacedFault| noted.fault.at(lines.place(noted.byte), noted.key);
    Layer {
        values,
        places,
        mistakes: noted.into_iter().map(located).collect(),
        removed: walk.removed.into_iter().map(located).collect(),
    }
}

impl Walk {
    fn read_table(&mut self, at: &At, table: &DeTable<'_>) -> Map<String, Value> {
        let mut values = Map::new();
        for (name, value) in in_order(table) {
            let read = self.read_entry(at, name, value);
            values.extend(read.map(|value| (name.get_ref().to_string(), value)));
        }
        if at.pattern == "servers.NAME" {
            self.check_launch(at, table);
            self.check_limits(at, table, &values);
        }
        values
    }

    fn read_entry(
        &mut self,
        parent: &At,
        name: &Name<'_>,
        value: &SpannedValue<'_>,
    ) -> Option<Value> {
        let (at, found) = parent.child(name.get_ref(), value.span());
        match found {
            None => {
                let hint = keys::unknown(parent.pattern, name.get_ref());
                self.note(name.span(), &at, Fault::new("unknown key", hint));
                None
            }
            Some(KeyMatch::Removed(replacement)) => {
                let fault = Fault::removed(replacement);
                self.removed.push(PlacedFault::new(name.span(), &at, fault));
                None
            }
            Some(KeyMatch::Value(key)) => self.read_value(&at, key, value.get_ref()),
            Some(KeyMatch::Table(_)) => match value.get_ref() {
                DeValue::Table(table) => self.read_named(&at, name, table),
                other => {
                    self.note(at.span.clone(), &at, not_a_table(&at, other));
                    None
                }
            },
        }
    }

    /// A table of ours. The content of a server with an invalid name is checked all the same.
    fn read_named(&mut self, at: &At, name: &Name<'_>, table: &DeTable<'_>) -> Option<Value> {
        let before = self.noted.len();
        let values = self.read_table(at, table);
        if at.pattern == "commands.NAME" && self.noted.len() == before {
            self.check_command(at, name, &values);
        }
        if at.pattern != "servers.NAME" {
            // A table that has only former keys is a former table.
            return (!keys::names(at.pattern).is_empty()).then_some(Value::Object(values));
        }
        match name.get_ref().parse::<ServerName>() {
            Ok(server) if server.is_scripts() => {
                let what = "server name `scripts` is reserved for saved scripts, the files of \
                    `scripts/` beside this file";
                let fault = Fault::new(what, "choose another name");
                self.note(name.span(), at, fault);
                None
            }
            Ok(_) => Some(Value::Object(values)),
            Err(error) => {
                let fault = bad_name(name.get_ref(), &error);
                self.note(name.span(), at, fault);
                None
            }
        }
    }

    fn read_value(&mut self, at: &At, key: &KeySpec, value: &DeValue<'_>) -> Option<Value> {
        self.starts.push((at.key.clone(), at.span.start));
        match (&key.kind, value) {
            (ValueKind::List(item), DeValue::Array(items)) => self.read_list(at, item, items),
            (
                ValueKind::Variables
                | ValueKind::Headers
                | ValueKind::Tokens
                | ValueKind::TokenFiles,
                DeValue::Table(table),
            ) => Some(self.read_templates(at, &key.kind, table)),
            (ValueKind::Patterns, DeValue::Table(table)) => Some(self.read_patterns(at, table)),
            (ValueKind::Arguments, DeValue::Table(table)) => self.read_arguments(at, table),
            (ValueKind::ArgumentSettings, DeValue::Table(table)) => {
                self.read_argument_settings(at, table)
            }
            (ValueKind::Rules, DeValue::Array(items)) => {
                Some(self.read_tables(at, items, |it| policy::Rule::read(it, Some("/")).map(drop)))
            }
            (ValueKind::Quotas, DeValue::Array(items)) => {
                Some(self.read_tables(at, items, |it| policy::Quota::read(it).map(drop)))
            }
            (kind, value) => self.read_scalar(at, kind, value),
        }
    }

    /// A server is local or remote, and each kind has keys that are invalid for the other.
    fn check_launch(&mut self, at: &At, table: &DeTable<'_>) {
        let has = |name: &str| table.keys().any(|key| key.get_ref() == name);
        let is_of_commands = self.has_commands && at.key == "servers.commands";
        let (foreign, kind): (&[&str], _) = match (has("command"), has("url")) {
            _ if is_of_commands => (FOREIGN_TO_COMMANDS, "[commands.NAME]"),
            (true, true) => {
                let what = "both `command` and `url`";
                let hint =
                    "keep `command` to start a program, or `url` to connect to a running server";
                return self.note(at.span.clone(), at, Fault::new(what, hint));
            }
            (false, false) if misspelt(table) => return,
            (false, false) => return self.note_no_launch(at),
            (true, false) => (&["headers", "oauth", "login"], "command"),
            (false, true) => (
                &["args", "env", "cwd", "inherit_env", "sandbox", "image"],
                "url",
            ),
        };
        for (name, _) in in_order(table) {
            if foreign.contains(&name.get_ref().as_ref()) {
                let (at, _) = at.child(name.get_ref(), name.span());
                let what = format!("has no effect with `{kind}`");
                self.note(name.span(), &at, Fault::new(what, "remove it"));
            }
        }
    }

    /// Checks a command whose values are valid each.
    fn check_command(&mut self, at: &At, name: &Name<'_>, values: &Map<String, Value>) {
        let read = serde_json::from_value(values.clone().into());
        let read = read.map_err(|error| error.to_string());
        let checked = read.and_then(|it| CommandTool::new(name.get_ref(), &it));
        if let Err(what) = checked {
            self.note(name.span(), at, Fault::bare(what));
        }
    }

    fn note_no_launch(&mut self, at: &At) {
        let what = "neither `command` nor `url`";
        let hint = "add `command = \"npx\"` to start a program, or `url = \"https://...\"` to connect to a running server";
        self.note(at.span.clone(), at, Fault::new(what, hint));
        if let Some(last) = self.noted.last_mut() {
            last.missing = true;
        }
    }

    /// A limit that is a mistake by itself is not compared with others.
    fn check_limits(&mut self, at: &At, table: &DeTable<'_>, values: &Map<String, Value>) {
        let number = |name: &str| values.get(name).and_then(Value::as_u64);
        let timeout = match number("timeout_s") {
            None if table.contains_key("timeout_s") => return,
            timeout => timeout.unwrap_or(TIMEOUT_DEFAULT.as_secs()),
        };
        let Some((max, (_, written))) =
            number("timeout_max_s").zip(table.get_key_value("timeout_max_s"))
        else {
            return;
        };
        if let Err(fault) = rules::check_limits(timeout, max) {
            let (at, _) = at.child("timeout_max_s", written.span());
            self.note(written.span(), &at, fault);
        }
    }
}

/// Keys of servers that mean nothing for command-line programs.
const FOREIGN_TO_COMMANDS: &[&str] = &[
    "command", "url", "args", "headers", "oauth", "login", "roots", "scope",
];

/// Returns true if an unknown key, which is a mistake of its own, was probably meant to be `command` or
/// `url`.
fn misspelt(table: &DeTable<'_>) -> bool {
    let known = keys::names("servers.NAME");
    let mut unknown = table
        .keys()
        .map(|key| key.get_ref().as_ref())
        .filter(|key| !known.contains(key));
    unknown.any(|key| keys::nearest(key, ["command", "url"]).is_some())
}

fn not_a_table(at: &At, found: &DeValue<'_>) -> Fault {
    let what = format!("expected a table, found {}", as_written(found).noun());
    let hint = match at.pattern {
        "servers" => "write `[servers.NAME]`, one table per server".to_owned(),
        "servers.NAME" => format!("write `[{}]` and below it `command` or `url`", at.key),
        "clients" => "write `[clients.NAME]`, one table per client".to_owned(),
        "profiles" => "write `[profiles.NAME]`, one table per profile".to_owned(),
        "commands" => "write `[commands.NAME]`, one table per program".to_owned(),
        "servers.NAME.overlay" => format!("write `[{}.TOOL]`, one table per tool", at.key),
        other => {
            let known = keys::names(other).join("`, `");
            format!("write `[{}]` and below it `{known}`", at.key)
        }
    };
    Fault::new(what, hint)
}

fn bad_name(name: &str, error: &NameError) -> Fault {
    let better = rules::slug(name);
    let what = match error {
        NameError::TooLong(_) => {
            format!("a server name has at most {SERVER_NAME_CHARS_MAX} characters")
        }
        NameError::Character { found, .. } => format!("a server name cannot contain {found:?}"),
        other => other.to_string(),
    };
    match better.parse::<ServerName>() {
        Ok(better) => Fault::new(what, format!("write `[servers.{better}]`")),
        Err(_) => Fault::new(
            what,
            "choose another name: lower-case letters, digits and `-`",
        ),
    }
}
