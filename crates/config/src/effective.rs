//! The values in effect after all layers, and the origin of each.

use std::fmt;

use figment::{
    Figment, Profile, Provider as _,
    value::{Dict, Value as Merged},
};
use printable::{mask_arguments, mask_secrets};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    keys::{self, KeyMatch, KeySpec, ValueKind},
    mistake::key_of,
};

/// A value in effect. Prints as a line of TOML.
#[derive(Debug, Serialize)]
pub struct EffectiveValue {
    /// The dotted key, as it would be written in the file.
    pub key: String,
    /// The value, with everything that looks secret masked.
    pub value: Value,
    /// `FILE:LINE`, a variable, a flag, or `default`.
    pub origin: String,
}

impl fmt::Display for EffectiveValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = toml::Value::try_from(&self.value).map_err(|_| fmt::Error)?;
        write!(f, "{} = {value}", self.key)
    }
}

pub(super) fn list(figment: &Figment) -> Vec<EffectiveValue> {
    let mut data = figment.data().unwrap_or_default();
    let merged = data.remove(&Profile::Default).unwrap_or_default();
    let mut found = Vec::new();
    collect(figment, "", &mut Vec::new(), &merged, &mut found);
    found
}

fn collect<'a>(
    figment: &Figment,
    pattern: &str,
    path: &mut Vec<&'a str>,
    table: &'a Dict,
    found: &mut Vec<EffectiveValue>,
) {
    let values = table.iter().map(|(name, value)| {
        let pattern = keys::child(pattern, name).unwrap_or_default();
        (name, value, keys::find(&pattern), pattern)
    });
    // The values of a table come before the tables in it, as in a file.
    let (values, tables): (Vec<_>, Vec<_>) =
        values.partition(|(.., key, _)| matches!(key, Some(KeyMatch::Value(_))));
    for (name, value, key, pattern) in values.into_iter().chain(tables) {
        path.push(name);
        match (key, value) {
            (Some(KeyMatch::Value(key)), value) => found.push(EffectiveValue {
                key: key_of(path),
                value: mask(key, serde_json::to_value(value).unwrap_or_default()),
                origin: find_origin(figment, value, path),
            }),
            (_, Merged::Dict(_, inner)) => collect(figment, &pattern, path, inner, found),
            _ => {}
        }
        path.pop();
    }
}

fn find_origin(figment: &Figment, value: &Merged, path: &[&str]) -> String {
    let metadata = figment.get_metadata(value.tag());
    metadata.map_or_else(String::new, |it| it.interpolate(&Profile::Default, path))
}

fn mask(key: &KeySpec, value: Value) -> Value {
    let name = match key.kind {
        // Their names do not show whether a value is secret.
        ValueKind::Headers | ValueKind::Tokens => Some("token"),
        _ => None,
    };
    match (&key.kind, value) {
        // The layers have these as JSON text.
        (
            ValueKind::Arguments
            | ValueKind::ArgumentSettings
            | ValueKind::Rules
            | ValueKind::Quotas,
            Value::String(json),
        ) => serde_json::from_str(&json).unwrap_or(Value::String(json)),
        (ValueKind::Choice(_), value) => value,
        (_, Value::String(text)) => mask_secrets(&text, Some(key.name())).into(),
        (_, Value::Array(items)) => mask_arguments(items.iter().filter_map(Value::as_str)).into(),
        (_, Value::Object(entries)) => {
            let masked = |(of, value): (String, Value)| {
                let text = value.as_str().unwrap_or_default();
                let text = mask_secrets(text, Some(name.unwrap_or(&of)));
                (of, Value::String(text))
            };
            Value::Object(entries.into_iter().map(masked).collect::<Map<_, _>>())
        }
        (_, other) => other,
    }
}
