//! The place of servers in a file.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The place of the servers in a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot<'a> {
    /// The keys that lead there.
    pub(crate) key: &'a [String],
    /// True if they are a list of tables with a `name`.
    pub(crate) list: bool,
}

/// The tables that an edit made besides the entry, to be removed with it. TOML needs none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Made {
    /// The number of tables around the entry.
    pub(crate) tables: usize,
    /// True if the innermost existing value was `null`.
    pub(crate) was_null: bool,
}

/// Returns the value that keys lead to.
pub(crate) fn at<'a>(value: &'a Value, key: &[String]) -> Option<&'a Value> {
    key.iter().try_fold(value, |value, key| value.get(key))
}

/// Returns the entry of this name.
pub(crate) fn entry_at<'a>(whole: &'a Value, slot: Slot<'_>, name: &str) -> Option<&'a Value> {
    match at(whole, slot.key)? {
        Value::Array(items) if slot.list => items
            .iter()
            .rfind(|item| item["name"].as_str() == Some(name)),
        table => table.get(name),
    }
}

pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        value => value.is_null(),
    }
}
