//! Renames a server in its place.

use toml_edit::{DocumentMut, InlineTable, Item, Key, Table, Value};

/// Renames a server.
pub(super) fn rename(toml: &mut DocumentMut, from: &str, to: &str) {
    match &mut toml["servers"] {
        Item::Table(servers) => rename_in_table(servers, from, to),
        Item::Value(Value::InlineTable(servers)) => rename_inline(servers, from, to),
        _ => {}
    }
}

/// All are removed and added again: dotted and inline servers are ordered by name.
fn rename_in_table(servers: &mut Table, from: &str, to: &str) {
    let names: Vec<_> = servers.iter().map(|(name, _)| name.to_owned()).collect();
    for name in names {
        if let Some((key, item)) = servers.remove_entry(&name) {
            servers.insert_formatted(&renamed(key, from, to), item);
        }
    }
}

fn rename_inline(servers: &mut InlineTable, from: &str, to: &str) {
    let names: Vec<_> = servers.iter().map(|(name, _)| name.to_owned()).collect();
    for name in names {
        if let Some((key, value)) = servers.remove_entry(&name) {
            servers.insert_formatted(&renamed(key, from, to), value);
        }
    }
}

fn renamed(key: Key, from: &str, to: &str) -> Key {
    if key.get() != from {
        return key;
    }
    let mut renamed = Key::new(to);
    *renamed.leaf_decor_mut() = key.leaf_decor().clone();
    *renamed.dotted_decor_mut() = key.dotted_decor().clone();
    renamed
}
