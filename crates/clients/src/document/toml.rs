//! TOML, read by `toml` and edited by `toml_edit`.

use serde_json::Value;
use toml_edit::{
    ArrayOfTables, DocumentMut, InlineTable, Item, Table, TableLike,
    visit::{self, Visit},
};

use super::{
    error::{EditError, SyntaxError},
    lines::line_number,
    slot::Slot,
};

pub(super) fn read(text: &str) -> Result<Value, SyntaxError> {
    toml::from_str(text).map_err(|error| SyntaxError {
        line: error.span().map_or(1, |span| line_number(text, span.start)),
        what: error.message().to_owned(),
    })
}

/// Edits a text in its own form. `None` from `edit` means that nothing was found to edit.
fn change<T>(
    text: &str,
    edit: impl FnOnce(&mut DocumentMut) -> Option<T>,
) -> Result<Option<String>, EditError> {
    let parsed = files::form::strip(text).parse();
    let mut document: DocumentMut = parsed.map_err(|_| EditError::Form)?;
    let edited = edit(&mut document);
    Ok(edited.map(|_| files::form::restore(text, &document.to_string())))
}

pub(super) fn add(
    text: &str,
    slot: Slot<'_>,
    name: &str,
    entry: &Value,
) -> Result<String, EditError> {
    let entry = toml::to_string(entry).map_err(|_| EditError::Form)?;
    let entry: DocumentMut = entry.parse().map_err(|_| EditError::Form)?;
    let members = entry.as_table().clone().into_iter();
    let members = members.filter_map(|(key, item)| Some((key, item.into_value().ok()?)));
    let mut entry: Table = members.collect();
    let added = change(text, |document| {
        // The parser takes the comments of a file without tables for the text behind the last table.
        let head = document.trailing().as_str().unwrap_or_default();
        if document.is_empty() && head.contains('#') {
            let newline = if head.ends_with('\n') { "" } else { "\n" };
            entry.decor_mut().set_prefix(format!("{head}{newline}\n"));
            document.set_trailing("");
        }
        insert(document, slot, name, entry)
    });
    added?.ok_or(EditError::Form)
}

fn insert(document: &mut DocumentMut, slot: Slot<'_>, name: &str, entry: Table) -> Option<()> {
    let (last, parents) = slot.key.split_last()?;
    let root: &mut dyn TableLike = document.as_table_mut();
    let parent = parents.iter().try_fold(root, |table, key| {
        table
            .entry(key)
            .or_insert_with(implicit)
            .as_table_like_mut()
    })?;
    if slot.list {
        let empty = || Item::ArrayOfTables(ArrayOfTables::new());
        match parent.entry(last).or_insert_with(empty) {
            Item::ArrayOfTables(items) => items.push(entry),
            item => item.as_array_mut()?.push(entry.into_inline_table()),
        }
    } else {
        let holder = parent.entry(last).or_insert_with(implicit);
        holder.as_table_like_mut()?.insert(name, Item::Table(entry));
    }
    Some(())
}

/// Creates a table whose own header is not written.
fn implicit() -> Item {
    let mut table = Table::new();
    table.set_implicit(true);
    Item::Table(table)
}

/// Removes an entry; `None` if there is no such entry.
pub(super) fn remove(text: &str, slot: Slot<'_>, name: &str) -> Result<Option<String>, EditError> {
    change(text, |document| {
        let mut comments = Comments::default();
        let mut is_found = false;
        // A list may hold the name twice.
        while let Some(removed) = take(document, slot, name) {
            comments.visit_item(&removed);
            is_found = true;
        }
        // Each comment is inserted above the comments that were moved to the same place.
        comments.0.sort();
        for (position, text) in comments.0.iter().rev() {
            keep_comment(document, *position, text);
        }
        is_found.then_some(())
    })
}

fn take(document: &mut DocumentMut, slot: Slot<'_>, name: &str) -> Option<Item> {
    let mut holder = document.as_item_mut();
    for key in slot.key {
        holder = holder.get_mut(key.as_str())?;
    }
    match holder {
        Item::ArrayOfTables(items) if slot.list => {
            let is_named = |it: &Table| it.get("name").and_then(Item::as_str) == Some(name);
            let index = items.iter().position(is_named)?;
            Some(Item::Table(items.remove(index)))
        }
        holder if slot.list => {
            let items = holder.as_array_mut()?;
            let name_of = |it: &InlineTable| it.get("name")?.as_str().map(str::to_owned);
            let is_named = |it: &toml_edit::Value| {
                it.as_inline_table().and_then(name_of).as_deref() == Some(name)
            };
            let index = items.iter().position(is_named)?;
            Some(Item::Value(items.remove(index)))
        }
        holder => holder.as_table_like_mut()?.remove(name),
    }
}

/// Comments above the headers of a removed entry, each with the position of its header.
#[derive(Default)]
struct Comments(Vec<(isize, String)>);

impl<'d> Visit<'d> for Comments {
    fn visit_table(&mut self, table: &'d Table) {
        let above = table.decor().prefix().and_then(|it| it.as_str());
        let comment = above.filter(|it| it.contains('#'));
        if let (Some(at), Some(comment)) = (table.position(), comment) {
            // The prefix includes the empty line before our own header.
            let comment = comment
                .strip_suffix("\n\n")
                .map_or(comment, |it| &comment[..=it.len()]);
            self.0.push((at, comment.to_owned()));
        }
        visit::visit_table(self, table);
    }
}

/// Moves a comment to the next header of the document, or to its end.
fn keep_comment(document: &mut DocumentMut, position: isize, comment: &str) {
    let mut next = None;
    visit_headers(document, &mut |table| {
        let own = table.position().filter(|at| *at > position);
        next = [next, own].into_iter().flatten().min();
    });
    if next.is_none() {
        let trailing = document.trailing().as_str().unwrap_or_default();
        document.set_trailing(format!("{comment}{trailing}"));
        return;
    }
    visit_headers(document, &mut |table| {
        if table.position() == next {
            let own = table.decor().prefix().and_then(|it| it.as_str());
            let prefix = format!("{comment}{}", own.unwrap_or_default());
            table.decor_mut().set_prefix(prefix);
        }
    });
}

/// Visits each table that has a header line of its own.
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
