//! The text of a configuration file: read as a value, and edited at the place of an entry. The library of
//! each format keeps the other values and comments. YAML is only read.
//!
//! The result of every edit is parsed again: if it is not the intended value, the edit is refused.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use self::error::{EditError, SyntaxError};
pub(crate) use self::slot::{Slot, at, entry_at};

mod error;
mod json;
mod slot;
mod toml;

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// JSON. Comments and commas after the last item are read too.
    Json,
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
        Format::Json => json::read(text),
        Format::Toml => toml::read(text),
        Format::Yaml => Ok(tool::read_yaml(text)?),
    }
}

/// Adds an entry in the place of any of the same name; without an entry, removes that.
pub(crate) fn edit(
    text: &str,
    format: Format,
    slot: Slot<'_>,
    name: &str,
    entry: Option<&Value>,
) -> Result<String, EditError> {
    let mut expected = read(text, format)?;
    check_path(&expected, slot)?;
    set(&mut expected, slot, name, entry);
    let edited = match format {
        Format::Json => {
            let bare = text.trim_start_matches(BOM);
            let mark = &text[..text.len() - bare.len()];
            format!("{mark}{}", json::edit(bare, slot.key, name, entry)?)
        }
        Format::Toml => toml::edit(text, slot, name, entry)?,
        Format::Yaml => return Err(EditError::Yaml),
    };
    let mut found = read(&edited, format).map_err(|_| EditError::Form)?;
    for value in [&mut found, &mut expected] {
        prune(value, slot.key);
    }
    if found == expected {
        Ok(edited)
    } else {
        Err(EditError::Form)
    }
}

/// Checks that only tables are on the path to the slot, and that no other value is in its place.
fn check_path(whole: &Value, slot: Slot<'_>) -> Result<(), EditError> {
    let mut value = whole;
    for (depth, key) in slot.key.iter().enumerate() {
        if !value.is_null() && !value.is_object() {
            return Err(EditError::Occupied(slot.key[..depth].join(".")));
        }
        value = value.get(key).unwrap_or(&Value::Null);
    }
    match value {
        Value::Null => Ok(()),
        Value::Object(_) if !slot.list => Ok(()),
        Value::Array(_) if slot.list => Ok(()),
        _ => Err(EditError::Occupied(slot.key.join("."))),
    }
}

/// Changes a value as [`edit`] changes the text. An index creates the tables that are missing.
fn set(whole: &mut Value, slot: Slot<'_>, name: &str, entry: Option<&Value>) {
    let mut holder = whole;
    for key in slot.key {
        holder = &mut holder[key];
    }
    if slot.list {
        let mut items = holder.as_array().cloned().unwrap_or_default();
        items.retain(|item| item["name"] != name);
        items.extend(entry.cloned());
        *holder = items.into();
    } else if let Some(entry) = entry {
        holder[name] = entry.clone();
    } else if let Some(members) = holder.as_object_mut() {
        members.shift_remove(name);
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
    if [json!({}), json!([]), Value::Null].contains(inner)
        && let Value::Object(members) = value
    {
        members.shift_remove(first);
    }
}

/// Renders an entry as lines that a person pastes into a YAML file, below the keys that lead to it.
pub(crate) fn render_yaml(slot: Slot<'_>, name: &str, entry: &Value) -> String {
    let mut keys: Vec<&str> = slot.key.iter().map(String::as_str).collect();
    keys.extend((!slot.list).then_some(name));
    let keys = keys.iter().enumerate();
    let mut lines: Vec<String> = keys
        .map(|(depth, key)| format!("{}{key}:", "  ".repeat(depth)))
        .collect();
    let indent = "  ".repeat(lines.len());
    for (index, (key, value)) in entry.as_object().into_iter().flatten().enumerate() {
        let lead = match (slot.list, index) {
            (true, 0) => "- ",
            (true, _) => "  ",
            (false, _) => "",
        };
        lines.push(format!("{indent}{lead}{key}: {value}"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;
