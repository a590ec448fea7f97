//! The values in effect after all layers, and the origin of each.

use std::{fmt, path::Path};

use printable::{mask_arguments, mask_secrets};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    Mistake,
    keys::{self, KeyMatch, KeySpec, ValueKind},
    layers::{self, Layer},
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

/// `file` is the path as it is shown.
pub(super) fn list(file: &Path, layers: &[Layer; 3]) -> Result<Vec<EffectiveValue>, Vec<Mistake>> {
    let mut merged = Value::Object(layers::merge(layers.clone())?);
    merged.sort_all_objects();
    let mut listing = Listing {
        file,
        layers,
        found: Vec::new(),
    };
    if let Value::Object(merged) = &merged {
        listing.collect("", &mut Vec::new(), merged);
    }
    Ok(listing.found)
}

struct Listing<'a> {
    file: &'a Path,
    layers: &'a [Layer; 3],
    found: Vec<EffectiveValue>,
}

impl Listing<'_> {
    fn collect<'v>(
        &mut self,
        pattern: &str,
        path: &mut Vec<&'v str>,
        table: &'v Map<String, Value>,
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
                (Some(KeyMatch::Value(key)), value) => self.found.push(EffectiveValue {
                    key: key_of(path),
                    value: mask(key, value.clone()),
                    origin: self.find_origin(path),
                }),
                (_, Value::Object(inner)) => self.collect(&pattern, path, inner),
                _ => {}
            }
            path.pop();
        }
    }

    fn find_origin(&self, path: &[&str]) -> String {
        let layer = self.layers.iter().rfind(|layer| layer.sets(path));
        let place = layer.and_then(|layer| layer.places.get(&key_of(path)));
        place.map_or_else(|| "default".to_owned(), |place| place.origin(self.file))
    }
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
        (_, Value::Array(items)) if !items.iter().all(Value::is_number) => {
            mask_arguments(items.iter().filter_map(Value::as_str)).into()
        }
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
