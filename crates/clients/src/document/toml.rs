//! TOML, read by `toml` and edited by `toml_edit`.

use files::{
    form,
    toml::{insert_table, keep_text_above, remove_table},
};
use serde_json::Value;
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, TableLike};

use super::{
    error::{EditError, SyntaxError},
    slot::Slot,
};

pub(super) fn read(text: &str) -> Result<Value, SyntaxError> {
    toml::from_str(text).map_err(|error| SyntaxError {
        line: error
            .span()
            .map_or(1, |span| text[..span.start].matches('\n').count() + 1),
        what: error.message().to_owned(),
    })
}

/// Sets or removes an entry in the table or list that a key of one part names.
pub(super) fn edit(
    text: &str,
    slot: Slot<'_>,
    name: &str,
    entry: Option<&Value>,
) -> Result<String, EditError> {
    let parsed = form::strip(text).parse();
    let mut document: DocumentMut = parsed.map_err(|_| EditError::Form)?;
    let [key] = slot.key else {
        return Err(EditError::Form);
    };
    let entry = entry.map(table_of).transpose()?;
    if slot.list {
        edit_list(&mut document, key, name, entry).ok_or(EditError::Form)?;
    } else {
        remove_table(&mut document, key, name);
        if let Some(entry) = entry {
            insert_table(&mut document, key, name, entry, &[]);
        }
    }
    Ok(form::restore(text, &document.to_string()))
}

/// Returns an entry as one table, whose inner tables are inline.
fn table_of(entry: &Value) -> Result<Table, EditError> {
    let text = toml::to_string(entry).map_err(|_| EditError::Form)?;
    let parsed: DocumentMut = text.parse().map_err(|_| EditError::Form)?;
    let members = parsed.as_table().clone().into_iter();
    let members = members.filter_map(|(key, item)| Some((key, item.into_value().ok()?)));
    Ok(members.collect())
}

fn edit_list(
    document: &mut DocumentMut,
    key: &str,
    name: &str,
    entry: Option<Table>,
) -> Option<()> {
    let is_named = |item: &dyn TableLike| item.get("name").and_then(Item::as_str) == Some(name);
    let empty = || Item::ArrayOfTables(ArrayOfTables::new());
    let mut removed = Vec::new();
    match document.entry(key).or_insert_with(empty) {
        Item::ArrayOfTables(items) => {
            removed.extend(items.iter().filter(|item| is_named(*item)).cloned());
            items.retain(|item| !is_named(item));
            items.extend(entry);
        }
        item => {
            let items = item.as_array_mut()?;
            let is_kept =
                |item: &toml_edit::Value| item.as_inline_table().is_none_or(|item| !is_named(item));
            items.retain(is_kept);
            items.extend(entry.map(Table::into_inline_table));
        }
    }
    for table in removed {
        keep_text_above(document, &Item::Table(table));
    }
    Some(())
}
