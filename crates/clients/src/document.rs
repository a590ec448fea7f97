//! The text of a configuration file: read as a value, and edited at the place of an entry. In JSON no
//! other byte changes, in TOML no other value or comment. YAML is only read.
//!
//! The result of every edit is parsed again: if it is not the intended value, the edit is refused.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use self::error::{EditError, SyntaxError};
pub(crate) use self::render::render_yaml;
use self::slot::is_empty;
pub(crate) use self::slot::{Made, Slot, at, entry_at};

mod error;
mod flow;
mod json;
mod lines;
mod render;
mod slot;
mod toml;

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// JSON. Comments are read, and never written.
    Json,
    /// JSON with comments and commas after the last item.
    Jsonc,
    /// TOML.
    Toml,
    /// One document of YAML.
    Yaml,
}

const BOM: char = '\u{feff}';

/// Parses the whole text as a value; `null` if the text is empty.
pub(crate) fn read(text: &str, format: Format) -> Result<Value, SyntaxError> {
    let text = text.trim_start_matches(BOM);
    match format {
        Format::Json | Format::Jsonc => json::read(text),
        Format::Toml => toml::read(text),
        Format::Yaml => Ok(tool::read_yaml(text)?),
    }
}

/// Adds an entry, replacing one of the same name.
pub(crate) fn add(
    text: &str,
    format: Format,
    slot: Slot<'_>,
    name: &str,
    entry: &Value,
) -> Result<(String, Made), EditError> {
    let removed = remove(text, format, slot, name, Made::default())?;
    let text = removed.as_deref().unwrap_or(text);
    let mut expected = read(text, format)?;
    check_way(&expected, slot)?;
    let (bom, bare) = split_bom(text);
    let (after, made) = match format {
        Format::Json | Format::Jsonc => {
            let (after, made) = json::add(bare, slot, name, entry)?;
            (format!("{bom}{after}"), made)
        }
        Format::Toml => (toml::add(text, slot, name, entry)?, Made::default()),
        Format::Yaml => return Err(EditError::Yaml),
    };
    put(&mut expected, slot, name, entry);
    if read(&after, format).ok() != Some(expected) {
        return Err(EditError::Form);
    }
    Ok((after, made))
}

/// Removes an entry, and the tables that were `made` for it if nothing else is in them. Returns
/// `None` if there is no such entry.
pub(crate) fn remove(
    text: &str,
    format: Format,
    slot: Slot<'_>,
    name: &str,
    made: Made,
) -> Result<Option<String>, EditError> {
    let mut expected = read(text, format)?;
    if !take(&mut expected, slot, name) {
        return Ok(None);
    }
    let (bom, bare) = split_bom(text);
    let left = match format {
        Format::Json | Format::Jsonc => json::remove(bare, slot, name)?,
        Format::Toml => toml::remove(text, slot, name)?,
        Format::Yaml => return Err(EditError::Yaml),
    };
    let left = left.ok_or(EditError::Form)?;
    let mut found = read(&left, format).map_err(|_| EditError::Form)?;
    prune(&mut found, slot.key);
    prune(&mut expected, slot.key);
    if found != expected {
        return Err(EditError::Form);
    }
    Ok(Some(match format {
        Format::Toml | Format::Yaml => left,
        Format::Json | Format::Jsonc => format!("{bom}{}", json::remove_made(left, slot, made)?),
    }))
}

fn split_bom(text: &str) -> (&str, &str) {
    let rest = text.trim_start_matches(BOM);
    text.split_at(text.len() - rest.len())
}

/// Checks that only tables are on the path to the slot, and that no other value is in its place.
fn check_way(whole: &Value, slot: Slot<'_>) -> Result<(), EditError> {
    let mut value = whole;
    for (depth, key) in slot.key.iter().enumerate() {
        match value {
            Value::Null => return Ok(()),
            Value::Object(members) => match members.get(key) {
                Some(inner) => value = inner,
                None => return Ok(()),
            },
            _ => return Err(EditError::Occupied(slot.key[..depth].join("."))),
        }
    }
    let fits = match value {
        Value::Null => true,
        Value::Object(_) => !slot.list,
        Value::Array(_) => slot.list,
        _ => false,
    };
    fits.then_some(())
        .ok_or_else(|| EditError::Occupied(slot.key.join(".")))
}

/// Adds the entry to a value, as the edit adds it to the text.
fn put(whole: &mut Value, slot: Slot<'_>, name: &str, entry: &Value) {
    let mut value = whole;
    for key in slot.key {
        if value.is_null() {
            *value = Value::Object(Map::new());
        }
        let Value::Object(members) = value else {
            return;
        };
        value = members.entry(key.clone()).or_insert(Value::Null);
    }
    if value.is_null() {
        *value = if slot.list {
            Value::Array(Vec::new())
        } else {
            Value::Object(Map::new())
        };
    }
    match value {
        Value::Object(members) => drop(members.insert(name.to_owned(), entry.clone())),
        Value::Array(items) => items.push(entry.clone()),
        _ => {}
    }
}

fn take(whole: &mut Value, slot: Slot<'_>, name: &str) -> bool {
    let mut keys = slot.key.iter();
    match keys.try_fold(whole, |value, key| value.get_mut(key)) {
        Some(Value::Object(members)) => members.shift_remove(name).is_some(),
        Some(Value::Array(items)) if slot.list => {
            let before = items.len();
            items.retain(|item| item["name"].as_str() != Some(name));
            items.len() < before
        }
        _ => false,
    }
}

/// Removes the empty tables on the way to a slot: TOML does not write them.
fn prune(value: &mut Value, key: &[String]) {
    let Some((first, rest)) = key.split_first() else {
        return;
    };
    let Some(inner) = value.get_mut(first) else {
        return;
    };
    prune(inner, rest);
    if is_empty(inner)
        && let Value::Object(members) = value
    {
        members.shift_remove(first);
    }
}

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;
