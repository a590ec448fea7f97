//! The text of a configuration file: read as a value, and edited where an entry is, so that not
//! one other byte changes.
//!
//! Every edit is read again before it is answered: what comes of it must be the value that was
//! meant, else the edit is refused.

use serde::Deserialize;
use serde_json::{Map, Value};

pub use self::error::{EditError, SyntaxError};
pub(crate) use self::slot::{Made, Slot};
use self::{lines::apply, slot::Removal};

mod error;
mod flow;
mod json;
mod lines;
mod node;
mod render;
mod slot;
mod toml;
mod yaml;

/// The form of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// JSON. Comments are read, and never written.
    Json,
    /// JSON with comments and commas behind the last.
    Jsonc,
    /// TOML.
    Toml,
    /// One document of YAML.
    Yaml,
}

/// An entry that was taken out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Removed {
    /// The text without it.
    pub(crate) text: String,
    /// It, as it stood there.
    pub(crate) raw: String,
}

/// The whole of a text as a value; `null` where there is nothing in it.
pub(crate) fn read(text: &str, format: Format) -> Result<Value, SyntaxError> {
    let text = text.trim_start_matches(BOM);
    match format {
        Format::Json | Format::Jsonc => {
            Ok(json::parse(text)?.map_or(Value::Null, |it| it.to_json()))
        }
        Format::Toml => toml::read(text),
        Format::Yaml => Ok(yaml::parse(text)?.map_or(Value::Null, |it| it.to_json())),
    }
}

/// Puts an entry in, in place of one of the same name.
pub(crate) fn add(
    text: &str,
    format: Format,
    slot: Slot<'_>,
    name: &str,
    entry: &Value,
) -> Result<(String, Made), EditError> {
    let (bom, text) = split_bom(text);
    let text = match remove(text, format, slot, name, Made::default())? {
        Some(removed) => removed.text,
        None => text.to_owned(),
    };
    let before = read(&text, format)?;
    check_way(&before, slot)?;
    let (edits, made) = match format {
        Format::Json | Format::Jsonc => json::add(&text, slot, name, entry)?,
        Format::Toml => (toml::add(&text, slot, name, entry), Made::default()),
        Format::Yaml => yaml::add(&text, slot, name, entry)?,
    };
    let after = apply(&text, edits);
    let mut expected = before;
    put(&mut expected, slot, name, entry);
    if read(&after, format).ok() != Some(expected) {
        return Err(EditError::Form);
    }
    Ok((format!("{bom}{after}"), made))
}

/// Takes an entry out, and what was `made` for it if nothing else is in there; none where there
/// is no such entry.
pub(crate) fn remove(
    text: &str,
    format: Format,
    slot: Slot<'_>,
    name: &str,
    made: Made,
) -> Result<Option<Removed>, EditError> {
    let (bom, text) = split_bom(text);
    let mut expected = read(text, format)?;
    if !take(&mut expected, slot, name) {
        return Ok(None);
    }
    let mut left = text.to_owned();
    let mut raw = None;
    // A name may stand there twice, of which parsers read the last.
    while let Some(edit) = remove_once(&left, format, slot, name)? {
        left = apply(&left, edit.edits);
        raw.get_or_insert(edit.raw);
    }
    let found = read(&left, format).map_err(|_| EditError::Form)?;
    if without_empty(&found, slot) != without_empty(&expected, slot) {
        return Err(EditError::Form);
    }
    let left = remove_made(left, format, slot, made)?;
    let raw = raw.ok_or(EditError::Form)?;
    Ok(Some(Removed {
        text: format!("{bom}{left}"),
        raw,
    }))
}

fn remove_once(
    text: &str,
    format: Format,
    slot: Slot<'_>,
    name: &str,
) -> Result<Option<Removal>, EditError> {
    Ok(match format {
        Format::Json | Format::Jsonc => json::remove(text, slot, name)?,
        Format::Toml => toml::remove(text, slot, name),
        Format::Yaml => yaml::remove(text, slot, name)?,
    })
}

/// Tables that we made go again if they are empty. TOML needs none.
fn remove_made(
    mut text: String,
    format: Format,
    slot: Slot<'_>,
    made: Made,
) -> Result<String, EditError> {
    let is_empty = |text: &str, key: &[String]| {
        read(text, format).is_ok_and(|whole| match at(&whole, key) {
            Some(Value::Object(members)) => members.is_empty(),
            Some(Value::Array(items)) => items.is_empty(),
            Some(Value::Null) => true,
            _ => false,
        })
    };
    let (mut key, kept) = (slot.key, slot.key.len().saturating_sub(made.tables));
    while key.len() > kept && is_empty(&text, key) {
        let (last, parent) = key.split_last().expect("it is longer than what is kept");
        let slot = Slot {
            key: parent,
            list: false,
        };
        match remove_once(&text, format, slot, last)? {
            Some(removal) => text = apply(&text, removal.edits),
            None => break,
        }
        key = parent;
    }
    if made.was_null && is_empty(&text, key) {
        let edits = match format {
            Format::Json | Format::Jsonc => json::make_null(&text, key)?,
            Format::Yaml => yaml::make_null(&text, key)?,
            Format::Toml => Vec::new(),
        };
        text = apply(&text, edits);
    } else if made == Made::default() && format == Format::Yaml && is_empty(&text, key) {
        let edits = yaml::make_empty(&text, slot)?;
        text = apply(&text, edits);
    }
    Ok(text)
}

const BOM: char = '\u{feff}';

fn split_bom(text: &str) -> (&str, &str) {
    let rest = text.trim_start_matches(BOM);
    text.split_at(text.len() - rest.len())
}

/// The value that keys lead to.
pub(crate) fn at<'a>(value: &'a Value, key: &[String]) -> Option<&'a Value> {
    key.iter().try_fold(value, |value, key| value.get(key))
}

/// Tables lead to the slot, and nothing else stands there.
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
    if fits {
        Ok(())
    } else {
        Err(EditError::Occupied(slot.key.join(".")))
    }
}

/// Puts the entry into a value, as the edit puts it into the text.
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
    let inner = slot
        .key
        .iter()
        .try_fold(whole, |value, key| value.get_mut(key));
    match inner {
        Some(Value::Object(members)) => members.shift_remove(name).is_some(),
        Some(Value::Array(items)) if slot.list => {
            let before = items.len();
            items.retain(|item| item.get("name").and_then(Value::as_str) != Some(name));
            items.len() < before
        }
        _ => false,
    }
}

/// TOML and YAML have forms in which a table that is empty is not there, or null.
fn without_empty(whole: &Value, slot: Slot<'_>) -> Value {
    let mut whole = whole.clone();
    for length in (1..=slot.key.len()).rev() {
        let (last, parent) = slot.key[..length].split_last().expect("it has one key");
        let inner = parent
            .iter()
            .try_fold(&mut whole, |value, key| value.get_mut(key));
        let Some(Value::Object(members)) = inner else {
            continue;
        };
        let is_empty = match members.get(last) {
            Some(Value::Object(members)) => members.is_empty(),
            Some(Value::Array(items)) => items.is_empty(),
            Some(Value::Null) => true,
            _ => false,
        };
        if is_empty {
            members.shift_remove(last);
        }
    }
    match &whole {
        Value::Object(members) if members.is_empty() => Value::Null,
        _ => whole,
    }
}

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;
