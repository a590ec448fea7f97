//! Values that contain values: lists, tables of templates, the arguments of an example.

use std::collections::BTreeMap;

use printable::Redaction;
use serde_json::{Map, Number, Value};
use toml::de::{DeArray, DeTable, DeValue};

use tool::ArgumentSetting;

use super::walk::{At, Walk, in_order};
use crate::{keys::ValueKind, mistake::Fault};

impl Walk {
    pub(super) fn read_list(
        &mut self,
        at: &At,
        kind: &ValueKind,
        items: &DeArray<'_>,
    ) -> Option<Value> {
        // A missing list allows everything, so an empty one would be ambiguous.
        if items.is_empty() && at.pattern.rsplit('.').next() == Some("allow") {
            let hint = "remove the key to allow all, or write `deny = [\"*\"]` to allow none";
            self.note(at.span.clone(), at, Fault::new("an empty list", hint));
            return None;
        }
        let mut read = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let at = at.item(index, item.span());
            read.extend(self.read_scalar(&at, kind, item.get_ref()));
        }
        Some(Value::Array(read))
    }

    pub(super) fn read_templates(
        &mut self,
        at: &At,
        kind: &ValueKind,
        table: &DeTable<'_>,
    ) -> Value {
        let mut read = Map::new();
        for (name, value) in in_order(table) {
            let at = at.member(name.get_ref(), value.span());
            if let Some(fault) = bad_name(kind, name.get_ref()) {
                self.note(name.span(), &at, fault);
            }
            let value = self.read_scalar(&at, &ValueKind::Template, value.get_ref());
            read.extend(value.map(|value| (name.get_ref().to_string(), value)));
        }
        Value::Object(read)
    }

    pub(super) fn read_patterns(&mut self, at: &At, table: &DeTable<'_>) -> Value {
        let mut read = Map::new();
        for (name, value) in in_order(table) {
            let at = at.member(name.get_ref(), value.span());
            let name = name.get_ref().to_string();
            let hint = "write a regular expression in single quotes, such as `'E-\\d{6}'`";
            let Some(pattern) = value.get_ref().as_str() else {
                self.note(at.span.clone(), &at, Fault::new("expected a pattern", hint));
                continue;
            };
            let own = BTreeMap::from([(name.clone(), pattern.to_owned())]);
            if let Err((_, why)) = Redaction::new(&own) {
                let what = format!("not a pattern: {}", printable::one_line(&why));
                self.note(at.span.clone(), &at, Fault::new(what, hint));
            }
            read.insert(name, pattern.into());
        }
        Value::Object(read)
    }

    /// Stored as JSON text: the layers sort the keys of a table, and an example is read by people.
    pub(super) fn read_arguments(&mut self, at: &At, table: &DeTable<'_>) -> Option<Value> {
        let object = self.read_object(at, table)?;
        Some(Value::String(Value::Object(object).to_string()))
    }

    /// Settings of arguments; stored as JSON text, since their values have any type.
    pub(super) fn read_argument_settings(&mut self, at: &At, table: &DeTable<'_>) -> Option<Value> {
        let object = self.read_object(at, table)?;
        for (name, value) in in_order(table) {
            let Some(Err(what)) = object
                .get(name.get_ref().as_ref())
                .map(ArgumentSetting::read)
            else {
                continue;
            };
            let at = at.member(name.get_ref(), value.span());
            let hint = "write `{ fixed = VALUE }`, `{ default = VALUE }` or `{ hidden = true }`";
            self.note(value.span(), &at, Fault::new(what, hint));
        }
        Some(Value::String(Value::Object(object).to_string()))
    }

    /// Rules for calls, or quotas; stored as JSON text for the same reason. One with a mistake is left
    /// out.
    pub(super) fn read_tables(
        &mut self,
        at: &At,
        items: &DeArray<'_>,
        check: impl Fn(&Map<String, Value>) -> Result<(), policy::Fault>,
    ) -> Value {
        let mut tables = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let at = at.item(index, item.span());
            let DeValue::Table(table) = item.get_ref() else {
                let hint = format!("write `[[{}]]`, one table each", at.pattern);
                let fault = Fault::new("expected a table", hint);
                self.note(at.span.clone(), &at, fault);
                continue;
            };
            let Some(read) = self.read_object(&at, table) else {
                continue;
            };
            match check(&read) {
                Ok(()) => tables.push(Value::Object(read)),
                Err(policy::Fault { key, what, hint }) => {
                    let dot = if key.is_empty() { "" } else { "." };
                    let key = format!("{}{dot}{key}", at.key);
                    self.note(at.span.clone(), &At { key, ..at }, Fault::new(what, hint));
                }
            }
        }
        Value::String(Value::Array(tables).to_string())
    }

    fn read_object(&mut self, at: &At, table: &DeTable<'_>) -> Option<Map<String, Value>> {
        let mut object = Map::new();
        for (name, value) in in_order(table) {
            let at = at.member(name.get_ref(), value.span());
            let value = self.read_json(&at, value.get_ref())?;
            object.insert(name.get_ref().to_string(), value);
        }
        Some(object)
    }

    fn read_json(&mut self, at: &At, value: &DeValue<'_>) -> Option<Value> {
        match value {
            DeValue::Table(table) => self.read_object(at, table).map(Value::Object),
            DeValue::Array(items) => {
                let items = items.iter().map(|item| self.read_json(at, item.get_ref()));
                items.collect::<Option<_>>().map(Value::Array)
            }
            DeValue::String(text) => Some(Value::String(text.to_string())),
            DeValue::Boolean(on) => Some(Value::Bool(*on)),
            DeValue::Datetime(time) => Some(Value::String(time.to_string())),
            DeValue::Integer(number) => {
                let whole = i128::from_str_radix(number.as_str(), number.radix()).ok();
                self.read_number(at, whole.and_then(Number::from_i128))
            }
            DeValue::Float(number) => {
                let float = number.as_str().parse().ok();
                self.read_number(at, float.and_then(Number::from_f64))
            }
        }
    }

    fn read_number(&mut self, at: &At, number: Option<Number>) -> Option<Value> {
        if number.is_none() {
            let fault = Fault::new("a number that JSON cannot represent", "write it as text");
            self.note(at.span.clone(), at, fault);
        }
        number.map(Value::Number)
    }
}

fn bad_name(kind: &ValueKind, name: &str) -> Option<Fault> {
    let (others, what, hint) = match kind {
        ValueKind::Headers => (
            "!#$%&'*+-.^_`|~",
            "not a header name",
            "write one such as `Authorization` or `X-Api-Key`",
        ),
        ValueKind::Tokens | ValueKind::TokenFiles => (
            "-_.",
            "not a token name",
            "use letters, digits, `-`, `_` and `.`, such as `laptop`",
        ),
        _ => {
            let is_bad = name.is_empty() || name.contains(['=', '\0']);
            return is_bad
                .then(|| Fault::new("not a variable name", "use letters, digits and `_`"));
        }
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || others.contains(c);
    let is_bad = name.is_empty() || !name.chars().all(is_plain);
    is_bad.then(|| Fault::new(what, hint))
}
