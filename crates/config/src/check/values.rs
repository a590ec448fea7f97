//! Values that contain values: lists, tables of templates, the arguments of an example.

use serde_json::{Map, Number, Value};
use toml::de::{DeArray, DeTable, DeValue};

use super::walk::{At, Walk, as_written, in_order};
use crate::{
    keys::ValueKind,
    mistake::{Fault, shown_key},
    rules::Written,
};

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
            let at = At {
                key: format!("{}[{index}]", at.key),
                span: item.span(),
                ..at.clone()
            };
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
            let at = At {
                key: format!("{}.{}", at.key, shown_key(name.get_ref())),
                span: value.span(),
                ..at.clone()
            };
            if let Some(fault) = bad_name(kind, name.get_ref()) {
                self.note(name.span(), &at, fault);
            }
            let value = self.read_scalar(&at, &ValueKind::Template, value.get_ref());
            read.extend(value.map(|value| (name.get_ref().to_string(), value)));
        }
        Value::Object(read)
    }

    /// Stored as JSON text: the layers sort the keys of a table, and an example is read by people.
    pub(super) fn read_arguments(&mut self, at: &At, table: &DeTable<'_>) -> Option<Value> {
        let object = self.read_object(at, table)?;
        Some(Value::String(Value::Object(object).to_string()))
    }

    /// Rules for calls; stored as JSON text for the same reason. One with a mistake is left out.
    pub(super) fn read_rules(&mut self, at: &At, items: &DeArray<'_>) -> Value {
        let mut rules = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let at = At {
                key: format!("{}[{index}]", at.key),
                span: item.span(),
                ..at.clone()
            };
            let DeValue::Table(table) = item.get_ref() else {
                let fault = Fault::new("expected a table", "write `[[rules]]`, one table per rule");
                self.note(at.span.clone(), &at, fault);
                continue;
            };
            let Some(rule) = self.read_object(&at, table) else {
                continue;
            };
            match policy::Rule::read(&rule, Some("/")) {
                Ok(_) => rules.push(Value::Object(rule)),
                Err(policy::Fault { key, what, hint }) => {
                    let dot = if key.is_empty() { "" } else { "." };
                    let key = format!("{}{dot}{key}", at.key);
                    self.note(at.span.clone(), &At { key, ..at }, Fault::new(what, hint));
                }
            }
        }
        Value::String(Value::Array(rules).to_string())
    }

    fn read_object(&mut self, at: &At, table: &DeTable<'_>) -> Option<Map<String, Value>> {
        let mut object = Map::new();
        for (name, value) in in_order(table) {
            let at = At {
                key: format!("{}.{}", at.key, shown_key(name.get_ref())),
                span: value.span(),
                ..at.clone()
            };
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
            DeValue::Integer(_) | DeValue::Float(_) => self.read_number(at, value),
        }
    }

    fn read_number(&mut self, at: &At, value: &DeValue<'_>) -> Option<Value> {
        let number = match value {
            DeValue::Float(float) => float.as_str().parse().ok().and_then(Number::from_f64),
            DeValue::Integer(_) => match as_written(value) {
                Written::Number(Ok(number)) => Number::from_i128(number),
                _ => None,
            },
            _ => None,
        };
        if number.is_none() {
            let fault = Fault::new("a number that JSON cannot represent", "write it as text");
            self.note(at.span.clone(), at, fault);
        }
        number.map(Value::Number)
    }
}

fn bad_name(kind: &ValueKind, name: &str) -> Option<Fault> {
    if *kind == ValueKind::Headers {
        let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        let good = !name.is_empty() && name.chars().all(token);
        return (!good).then(|| {
            Fault::new(
                "not a header name",
                "write one such as `Authorization` or `X-Api-Key`",
            )
        });
    }
    if matches!(kind, ValueKind::Tokens | ValueKind::TokenFiles) {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let good = !name.is_empty() && name.chars().all(plain);
        return (!good).then(|| {
            let what = "not a token name";
            Fault::new(
                what,
                "use letters, digits, `-`, `_` and `.`, such as `laptop`",
            )
        });
    }
    let good = !name.is_empty() && !name.contains(['=', '\0']);
    (!good).then(|| Fault::new("not a variable name", "use letters, digits and `_`"))
}
