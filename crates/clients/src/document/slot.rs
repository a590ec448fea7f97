//! The place of servers in a file.

use serde_json::Value;

/// The place of the servers in a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot<'a> {
    /// The keys that lead there.
    pub(crate) key: &'a [String],
    /// True if they are a list of tables with a `name`.
    pub(crate) list: bool,
}

/// Returns the value that keys lead to.
pub(crate) fn at<'a>(value: &'a Value, key: &[String]) -> Option<&'a Value> {
    key.iter().try_fold(value, |value, key| value.get(key))
}

/// Returns the entry of this name.
pub(crate) fn entry_at<'a>(whole: &'a Value, slot: Slot<'_>, name: &str) -> Option<&'a Value> {
    match at(whole, slot.key)? {
        Value::Array(items) if slot.list => items.iter().rfind(|item| item["name"] == name),
        table => table.get(name),
    }
}
