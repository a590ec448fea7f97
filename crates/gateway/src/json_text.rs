//! JSON text that is built from members and elements, which keep their text.

use std::fmt::Display;

use jsonrpc::{Fields, quote};
use serde_json::value::RawValue;

/// Writes an object; each value is JSON.
pub(crate) fn write_object(
    members: impl IntoIterator<Item = (impl AsRef<str>, impl Display)>,
) -> String {
    let members = members.into_iter();
    let members = members.map(|(key, value)| format!("{}:{value}", quote(key.as_ref())));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// Writes an object with another value, which is JSON, in a member that it has.
pub(crate) fn replace_member(fields: &Fields<'_>, key: &str, json: &str) -> String {
    let members = fields.0.iter();
    write_object(members.map(|(name, value)| (name, if name == key { json } else { value.get() })))
}

/// Writes an object with this member, whose value is JSON, after the others.
pub(crate) fn set_member(fields: &Fields<'_>, key: &str, json: &str) -> String {
    let others = fields.0.iter().filter(|(name, _)| name != key);
    let others = others.map(|(name, value)| (name.as_ref(), value.get()));
    write_object(others.chain([(key, json)]))
}

/// Returns the elements of a list that is a member of an object.
pub(crate) fn list_member<'r>(object: &'r str, key: &str) -> Option<Vec<&'r RawValue>> {
    serde_json::from_str(Fields::of(object)?.get(key)?.get()).ok()
}
