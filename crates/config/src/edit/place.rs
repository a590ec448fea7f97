//! Removes a server from its place, and renames it there.

use toml_edit::{DocumentMut, InlineTable, Item, Key, RawString, Table, Value};

/// Returns the position of the first table of an item among all tables of the file.
pub(super) fn position(item: &Item) -> Option<isize> {
    match item {
        Item::Table(table) => {
            let inner = table.iter().filter_map(|(_, item)| position(item)).min();
            let own = table.position().filter(|_| !table.is_implicit());
            [own, inner].into_iter().flatten().min()
        }
        _ => None,
    }
}

pub(super) fn remove(toml: &mut DocumentMut, name: &str) {
    match &mut toml["servers"] {
        Item::Table(servers) => {
            let Some(removed) = servers.remove(name) else {
                return;
            };
            if servers.is_empty() && !has_comment(servers) {
                toml.remove("servers");
            }
            keep_text_above(toml, &removed);
        }
        Item::Value(Value::InlineTable(servers)) => {
            servers.remove(name);
        }
        _ => {}
    }
}

fn has_comment(table: &Table) -> bool {
    !table.is_implicit() && !text_of(table.decor().prefix()).trim().is_empty()
}

/// Text above a table up to its last blank line is not about the table: it is kept, above the text that
/// follows.
pub(super) fn keep_text_above(toml: &mut DocumentMut, removed: &Item) {
    let Some(table) = removed.as_table() else {
        return;
    };
    let above = text_of(table.decor().prefix());
    let kept = up_to_last_blank_line(&above);
    if kept.trim().is_empty() {
        return;
    }
    let at = position(removed).unwrap_or(isize::MAX);
    let mut next = None;
    visit_headers(toml, &mut |table| {
        let position = table.position().filter(|it| *it > at);
        next = [next, position].into_iter().flatten().min();
    });
    if next.is_none() {
        let trailing = text_of(Some(toml.trailing()));
        toml.set_trailing(format!("{kept}{trailing}"));
        return;
    }
    visit_headers(toml, &mut |table| {
        if table.position() == next {
            let own = text_of(table.decor().prefix());
            table.decor_mut().set_prefix(format!("{kept}{own}"));
        }
    });
}

fn up_to_last_blank_line(text: &str) -> &str {
    let (mut at, mut end) = (0, 0);
    for line in text.split_inclusive('\n') {
        if line.trim().is_empty() {
            end = at;
        }
        at += line.len();
    }
    &text[..end]
}

/// Visits each table that has a header line `[...]` of its own.
fn visit_headers(table: &mut Table, visit: &mut dyn FnMut(&mut Table)) {
    for (_, item) in table.iter_mut() {
        let inner: Vec<&mut Table> = match item {
            Item::Table(inner) => vec![inner],
            Item::ArrayOfTables(all) => all.iter_mut().collect(),
            _ => Vec::new(),
        };
        for inner in inner {
            if !inner.is_implicit() && !inner.is_dotted() {
                visit(inner);
            }
            visit_headers(inner, visit);
        }
    }
}

pub(super) fn text_of(raw: Option<&RawString>) -> String {
    raw.and_then(RawString::as_str)
        .unwrap_or_default()
        .to_owned()
}

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
