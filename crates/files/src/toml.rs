//! Tables of a TOML text: inserted and removed so that the rest of the text stays.

use toml_edit::{DocumentMut, Item, RawString, Table, Value};

/// Inserts a table after the last one of the table `parent`, in the form that the file uses for those.
pub fn insert_table(
    toml: &mut DocumentMut,
    parent: &str,
    name: &str,
    mut table: Table,
    comment: &[String],
) {
    let apart = !toml.to_string().trim().is_empty();
    // The parser treats the text of a file that contains only comments as text after its tables; users
    // expect it before them.
    let mut head = String::new();
    if toml.is_empty() {
        head.push_str(toml.trailing().as_str().unwrap_or_default());
        if !head.is_empty() && !head.ends_with('\n') {
            head.push('\n');
        }
        toml.set_trailing("");
    }
    let parent = toml.entry(parent).or_insert_with(|| {
        let mut parent = Table::new();
        parent.set_implicit(true);
        Item::Table(parent)
    });
    match parent {
        Item::Value(Value::InlineTable(parent)) => {
            parent.insert(name, Value::InlineTable(table.into_inline_table()));
        }
        parent => {
            let mut above = head;
            above.push_str(if apart { "\n" } else { "" });
            for line in comment {
                above.push_str(format!("# {line}").trim_end());
                above.push('\n');
            }
            table.decor_mut().set_prefix(above);
            parent[name] = Item::Table(table);
        }
    }
}

/// Returns the position of the first table of an item among all tables of the file.
pub fn position(item: &Item) -> Option<isize> {
    match item {
        Item::Table(table) => {
            let inner = table.iter().filter_map(|(_, item)| position(item)).min();
            let own = table.position().filter(|_| !table.is_implicit());
            [own, inner].into_iter().flatten().min()
        }
        _ => None,
    }
}

/// Removes the table of this name from the table `parent`, with the comment directly above it.
pub fn remove_table(toml: &mut DocumentMut, parent: &str, name: &str) {
    match toml.get_mut(parent) {
        Some(Item::Table(tables)) => {
            let Some(removed) = tables.remove(name) else {
                return;
            };
            if tables.is_empty() && !has_comment(tables) {
                toml.remove(parent);
            }
            keep_text_above(toml, &removed);
        }
        Some(Item::Value(Value::InlineTable(tables))) => {
            tables.remove(name);
        }
        _ => {}
    }
}

fn has_comment(table: &Table) -> bool {
    !table.is_implicit() && !text_of(table.decor().prefix()).trim().is_empty()
}

/// Text above a table up to its last blank line is not about the table: it is kept, above the text that
/// follows.
pub fn keep_text_above(toml: &mut DocumentMut, removed: &Item) {
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

/// Returns the text before or after an item; empty if it has none of its own.
pub fn text_of(raw: Option<&RawString>) -> String {
    raw.and_then(RawString::as_str)
        .unwrap_or_default()
        .to_owned()
}
