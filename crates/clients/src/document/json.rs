//! JSON, with comments and without: parsed with the places of its values, and edited by bytes.
//!
//! `jsonc-parser` has an editor of its own (`cst`), which writes an object over several lines once it
//! adds to it: adding an entry and removing it again would not leave the same bytes.

use jsonc_parser::{
    CollectOptions, ParseOptions,
    ast::{self, ObjectProp},
    common::Ranged,
    parse_to_ast,
};
use serde_json::{Map, Value};

use super::{
    error::{EditError, SyntaxError},
    flow::{Flow, Layout},
    lines::{apply, indent_of, indent_step, newline_of},
    render,
    slot::{Made, Slot, at, is_empty},
};

const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

fn parse(text: &str) -> Result<Option<ast::Value<'_>>, SyntaxError> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &OPTIONS);
    let parsed = parsed.map_err(|error| SyntaxError {
        line: error.line_display(),
        what: error.kind().to_string(),
    })?;
    Ok(parsed.value)
}

pub(super) fn read(text: &str) -> Result<Value, SyntaxError> {
    Ok(parse(text)?.map_or(Value::Null, Value::from))
}

/// Returns the innermost value that the keys lead to, and the remaining keys.
fn reach<'a>(root: &'a ast::Value<'a>, key: &'a [String]) -> (&'a ast::Value<'a>, &'a [String]) {
    let (mut value, mut rest) = (root, key);
    while let Some((first, behind)) = rest.split_first()
        && let Some(inner) = get(value, first)
    {
        (value, rest) = (inner, behind);
    }
    (value, rest)
}

/// Returns the member of this name; of several, the last, as parsers do.
fn get<'a>(value: &'a ast::Value<'a>, name: &str) -> Option<&'a ast::Value<'a>> {
    let mut members = value.as_object()?.properties.iter();
    members
        .rfind(|it| it.name.as_str() == name)
        .map(|it| &it.value)
}

/// Returns the index of the entry of this name, in a table or a list.
fn position(holder: &ast::Value<'_>, name: &str) -> Option<usize> {
    let is_named = |item: &ast::Value<'_>| {
        let own = get(item, "name").and_then(ast::Value::as_string_lit);
        own.is_some_and(|own| own.value == name)
    };
    match holder {
        ast::Value::Object(it) => it
            .properties
            .iter()
            .rposition(|it| it.name.as_str() == name),
        ast::Value::Array(it) => it.elements.iter().rposition(is_named),
        _ => None,
    }
}

fn flow_of<'a>(text: &'a str, holder: &ast::Value<'_>) -> Flow<'a> {
    let span = |it: &dyn Ranged| it.start()..it.end();
    let items = match holder {
        ast::Value::Object(it) => it
            .properties
            .iter()
            .map(|it: &ObjectProp<'_>| span(it))
            .collect(),
        ast::Value::Array(it) => it.elements.iter().map(|it| span(it)).collect(),
        _ => Vec::new(),
    };
    Flow {
        text,
        inside: holder.start() + 1..holder.end() - 1,
        items,
    }
}

pub(super) fn add(
    text: &str,
    slot: Slot<'_>,
    name: &str,
    entry: &Value,
) -> Result<(String, Made), EditError> {
    let newline = newline_of(text);
    let Some(root) = parse(text)? else {
        let whole = wrap(slot.key, slot.list, name, entry);
        let whole = render::json_lines(&whole, "", "  ", newline);
        let made = Made {
            tables: slot.key.len(),
            was_null: false,
        };
        return Ok((format!("{text}{whole}{newline}"), made));
    };
    let (holder, rest) = reach(&root, slot.key);
    let was_null = holder.as_null_keyword().is_some();
    let made = Made {
        tables: rest.len(),
        was_null,
    };
    if was_null {
        let value = wrap(rest, slot.list, name, entry);
        let indent = indent_of(text, holder.start());
        let value = render::json_lines(&value, indent, indent_step(text), newline);
        return Ok((replace(text, holder, &value), made));
    }
    let flow = flow_of(text, holder);
    let layout = flow.layout();
    let render = |value: &Value| match &layout {
        Layout::Inline => render::json_inline(value),
        Layout::Lines(indent) => render::json_lines(value, indent, indent_step(text), newline),
    };
    let item = match rest.split_first() {
        Some((key, rest)) => {
            let value = render(&wrap(rest, slot.list, name, entry));
            format!("{}: {value}", render::quote(key))
        }
        None if slot.list => render(entry),
        None => format!("{}: {}", render::quote(name), render(entry)),
    };
    Ok((apply(text, flow.insert(&item, &layout)), made))
}

/// Returns the entry inside all the tables that are missing.
fn wrap(key: &[String], list: bool, name: &str, entry: &Value) -> Value {
    let one = |key: &str, value: Value| Value::Object(Map::from_iter([(key.to_owned(), value)]));
    let innermost = if list {
        Value::Array(vec![entry.clone()])
    } else {
        one(name, entry.clone())
    };
    key.iter()
        .rev()
        .fold(innermost, |value, key| one(key, value))
}

fn replace(text: &str, value: &ast::Value<'_>, new: &str) -> String {
    [&text[..value.start()], new, &text[value.end()..]].concat()
}

/// Removes an entry, at every occurrence of its name: parsers read the last.
pub(super) fn remove(text: &str, slot: Slot<'_>, name: &str) -> Result<Option<String>, EditError> {
    let mut removed: Option<String> = None;
    while let Some(left) = remove_once(removed.as_deref().unwrap_or(text), slot.key, name)? {
        removed = Some(left);
    }
    Ok(removed)
}

fn remove_once(text: &str, key: &[String], name: &str) -> Result<Option<String>, EditError> {
    let Some(root) = parse(text)? else {
        return Ok(None);
    };
    let (holder, rest) = reach(&root, key);
    let index = position(holder, name).filter(|_| rest.is_empty());
    Ok(index.map(|index| apply(text, flow_of(text, holder).remove(index))))
}

/// Removes the tables that were created for an entry, as far as they are empty.
pub(super) fn remove_made(
    mut text: String,
    slot: Slot<'_>,
    made: Made,
) -> Result<String, EditError> {
    let mut key = slot.key;
    for _ in 0..made.tables {
        let Some((last, parent)) = key.split_last().filter(|_| is_empty_at(&text, key)) else {
            break;
        };
        let Some(left) = remove_once(&text, parent, last)? else {
            break;
        };
        (text, key) = (left, parent);
    }
    if made.was_null && is_empty_at(&text, key) {
        let root = parse(&text)?;
        let left = root.map(|root| replace(&text, reach(&root, key).0, "null"));
        return Ok(left.unwrap_or(text));
    }
    Ok(text)
}

fn is_empty_at(text: &str, key: &[String]) -> bool {
    let whole = read(text).unwrap_or_default();
    at(&whole, key).is_some_and(is_empty)
}
