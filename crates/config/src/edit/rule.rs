//! A rule for calls, inserted at its place: before the rule that it is an exception to, or before all.

use files::toml::text_of;
use toml_edit::{Array, ArrayOfTables, Decor, DocumentMut, InlineTable, Item, Table, Value};

/// Inserts a rule at an index of the existing ones.
pub(super) fn insert(toml: &mut DocumentMut, index: usize, rule: &[(&str, String)]) {
    match toml.get_mut("rules") {
        Some(Item::Value(Value::Array(rules))) => insert_inline(rules, index, rule),
        Some(Item::ArrayOfTables(rules)) => insert_table(rules, index, rule),
        _ => {
            let mut rules = ArrayOfTables::new();
            let mut rule = table_of(rule);
            rule.set_position(Some(isize::MAX));
            rules.push(rule);
            toml.insert("rules", Item::ArrayOfTables(rules));
        }
    }
}

fn insert_table(rules: &mut ArrayOfTables, index: usize, rule: &[(&str, String)]) {
    let mut others: Vec<Table> = rules.iter().cloned().collect();
    let mut rule = table_of(rule);
    if let Some(next) = others.get_mut(index) {
        rule.set_position(next.position());
        // A comment directly above a rule belongs to it; one above a blank line does not.
        let above = text_of(next.decor().prefix());
        if let Some(end) = above
            .rfind("\n\n")
            .filter(|end| !above[..*end].trim().is_empty())
        {
            rule.decor_mut()
                .set_prefix(format!("{}\n\n", &above[..end]));
            next.decor_mut().set_prefix(&above[end + 1..]);
        } else if above.is_empty() {
            next.decor_mut().set_prefix("\n");
        }
    }
    others.insert(index.min(others.len()), rule);
    rules.clear();
    rules.extend(others);
}

/// In a list that has a rule on each line, the new one gets a line of its own; a comment behind a rule
/// stays on its line, and one above a rule stays above it.
fn insert_inline(rules: &mut Array, index: usize, rule: &[(&str, String)]) {
    let inline: InlineTable = rule.iter().map(|(key, value)| (*key, value)).collect();
    let mut inline = Value::from(inline);
    let last = rules.len().checked_sub(1).and_then(|last| rules.get(last));
    let is_own_line = |decor: &Decor| text_of(decor.prefix()).contains('\n');
    let indent = last.filter(|last| is_own_line(last.decor())).map(|last| {
        let prefix = text_of(last.decor().prefix());
        let start = prefix.rfind('\n').map_or(0, |at| at + 1);
        prefix[start..].to_owned()
    });
    let below = rules.get(index).map_or_else(
        || text_of(Some(rules.trailing())),
        |next| text_of(next.decor().prefix()),
    );
    let (before, after) = match &indent {
        Some(indent) => {
            let end = below.find('\n').unwrap_or(below.len());
            (
                format!("{}\n{indent}", &below[..end]),
                below[end..].to_owned(),
            )
        }
        None if index == 0 => (below, " ".to_owned()),
        None => (" ".to_owned(), below),
    };
    inline.decor_mut().set_prefix(before);
    match rules.get_mut(index) {
        Some(next) => next.decor_mut().set_prefix(after),
        None if indent.is_some() => rules.set_trailing(after),
        None => {}
    }
    rules.insert_formatted(index.min(rules.len()), inline);
}

fn table_of(rule: &[(&str, String)]) -> Table {
    let mut table = Table::new();
    table.decor_mut().set_prefix("\n");
    for (key, value) in rule {
        table.insert(key, toml_edit::value(value));
    }
    table
}
