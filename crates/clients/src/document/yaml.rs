//! YAML: one document, in blocks and in flow style.

mod parser;

pub(super) use parser::parse;
use serde_json::Value;

use super::{
    Slot,
    error::EditError,
    flow::{Comments, Layout},
    json::{flow_of, wrap},
    lines::{Edit, line_end, line_start, newline_of, next_line},
    node::{Kind, Member, Node},
    render,
    slot::{Made, Removal},
};

pub(super) fn add(
    text: &str,
    slot: Slot<'_>,
    name: &str,
    entry: &Value,
) -> Result<(Vec<Edit>, Made), EditError> {
    let Some(root) = parse(text)?.filter(|root| !root.is_null()) else {
        let made = Made {
            tables: slot.key.len(),
            was_null: false,
        };
        let block = members(&wrap(slot.key, slot.list, name, entry), 0, newline_of(text));
        return Ok((vec![append(text, text.len(), &block)], made));
    };
    let reached = root.reach(slot.key);
    let rest = &slot.key[reached.depth..];
    let mut made = Made {
        tables: rest.len(),
        was_null: false,
    };
    let value = wrap(rest, slot.list, name, entry);
    if let (true, Some(member)) = (reached.node.is_null(), reached.member) {
        made.was_null = true;
        return Ok((vec![fill_null(text, member, &value)], made));
    }
    if reached.node.is_flow {
        return Ok((add_to_flow(text, reached.node, &value), made));
    }
    let column = match &reached.node.kind {
        Kind::List(items) => items.first().map(|item| dash_of(text, item)),
        _ => None,
    };
    let column = column_of(text, column.unwrap_or(reached.node.span.start));
    let end = content_end(text, reached.node);
    let block = members(&value, column, newline_of(text));
    Ok((vec![append(text, end, &block)], made))
}

fn add_to_flow(text: &str, node: &Node, value: &Value) -> Vec<Edit> {
    let flow = flow_of(text, node, Comments::Hash);
    let item = match value {
        Value::Object(members) => members
            .iter()
            .next()
            .map(|(key, value)| format!("{}: {}", render::quote(key), render::json_inline(value))),
        Value::Array(items) => items.first().map(render::json_inline),
        _ => None,
    };
    let layout = match flow.layout() {
        Layout::Lines(_) if flow.items.is_empty() => Layout::Inline,
        layout => layout,
    };
    flow.insert(&item.unwrap_or_default(), &layout)
}

/// The value in place of one that is null, written or left out.
fn fill_null(text: &str, member: &Member, value: &Value) -> Edit {
    let span = member.value.span.clone();
    if span.is_empty() {
        let column = column_of(text, member.key_span.start) + 2;
        let block = members(value, column, newline_of(text));
        return append(text, member.key_span.end, &block);
    }
    Edit {
        span,
        text: render::json_inline(value),
    }
}

/// A table's members, or a list's items, as the lines of a block.
fn members(value: &Value, column: usize, newline: &str) -> String {
    let indent = " ".repeat(column);
    match value {
        Value::Array(items) => {
            let deeper = format!("{indent}  ");
            let item =
                |item: &Value| format!("{indent}- {}", render::yaml_block(item, &deeper, newline));
            items.iter().map(item).collect::<Vec<_>>().join(newline)
        }
        value => match first_list(value) {
            Some((key, list)) => {
                let key = render::yaml_text(key);
                let items = members(list, column + 2, newline);
                format!("{indent}{key}:{newline}{items}")
            }
            None => format!("{indent}{}", render::yaml_block(value, &indent, newline)),
        },
    }
}

/// The list of entries that a table is made for.
fn first_list(value: &Value) -> Option<(&String, &Value)> {
    let (key, value) = value.as_object()?.iter().next()?;
    let is_entries = value.as_array()?.first()?.is_object();
    is_entries.then_some((key, value))
}

/// Lines behind the line of this place.
fn append(text: &str, at: usize, block: &str) -> Edit {
    let newline = newline_of(text);
    let next = next_line(text, at);
    if next == text.len() && !text.is_empty() && !text.ends_with('\n') {
        Edit::insert(next, format!("{newline}{block}"))
    } else {
        Edit::insert(next, format!("{block}{newline}"))
    }
}

pub(super) fn remove(text: &str, slot: Slot<'_>, name: &str) -> Result<Option<Removal>, EditError> {
    let Some(root) = parse(text)? else {
        return Ok(None);
    };
    let reached = root.reach(slot.key);
    if reached.depth < slot.key.len() {
        return Ok(None);
    }
    let node = reached.node;
    let Some(index) = node.position(name) else {
        return Ok(None);
    };
    if node.is_flow {
        let flow = flow_of(text, node, Comments::Hash);
        let raw = text[flow.items[index].clone()].to_owned();
        return Ok(Some(Removal {
            edits: flow.remove(index),
            raw,
        }));
    }
    let (start, end) = match &node.kind {
        Kind::Map(members) => {
            let member = &members[index];
            (member.key_span.start, member_end(text, member))
        }
        Kind::List(items) => (
            dash_of(text, &items[index]),
            content_end(text, &items[index]),
        ),
        Kind::Scalar(_) => return Ok(None),
    };
    let raw = text[start..end].to_owned();
    Ok(Some(Removal {
        edits: vec![delete_lines(text, start, end)],
        raw,
    }))
}

fn delete_lines(text: &str, start: usize, end: usize) -> Edit {
    let (start, next) = (line_start(text, start), next_line(text, end));
    let ends_open = next == text.len() && !text.ends_with('\n');
    if ends_open && start > 0 {
        let newline = newline_of(text).len();
        return Edit::delete(start - newline..next);
    }
    Edit::delete(start..next)
}

/// The dash before an item of a list in block style.
fn dash_of(text: &str, item: &Node) -> usize {
    text[..item.span.start]
        .rfind('-')
        .unwrap_or(item.span.start)
}

/// Where the last line of a member's content ends.
fn member_end(text: &str, member: &Member) -> usize {
    if member.value.is_null() && member.value.span.is_empty() {
        return line_end(text, member.key_span.end);
    }
    content_end(text, &member.value).max(line_end(text, member.key_span.end))
}

fn content_end(text: &str, node: &Node) -> usize {
    let end = match &node.kind {
        Kind::Map(members) if !node.is_flow => {
            members.iter().map(|member| member_end(text, member)).max()
        }
        Kind::List(items) if !node.is_flow => {
            items.iter().map(|item| content_end(text, item)).max()
        }
        _ => None,
    };
    let end = end.unwrap_or_else(|| text[..node.span.end].trim_end().len().max(node.span.start));
    line_end(text, end)
}

fn column_of(text: &str, at: usize) -> usize {
    text[line_start(text, at)..at].chars().count()
}

/// `null` in place of brackets with nothing between them.
pub(super) fn make_null(text: &str, key: &[String]) -> Result<Vec<Edit>, EditError> {
    let root = parse(text)?;
    let null = |root: Node| {
        let node = root.reach(key).node;
        let span = node.span.clone();
        (!node.is_null()).then(|| Edit {
            span,
            text: "null".to_owned(),
        })
    };
    Ok(root.and_then(null).into_iter().collect())
}

/// Brackets behind a key that lost all its lines: programs that want a table refuse null.
pub(super) fn make_empty(text: &str, slot: Slot<'_>) -> Result<Vec<Edit>, EditError> {
    let root = parse(text)?;
    let brackets = if slot.list { " []" } else { " {}" };
    let fill = |root: Node| {
        let reached = root.reach(slot.key);
        let member = reached
            .member
            .filter(|it| it.value.is_null() && it.value.span.is_empty())?;
        let colon = text[member.key_span.end..].find(':')? + member.key_span.end + 1;
        Some(Edit::insert(colon, brackets))
    };
    Ok(root.and_then(fill).into_iter().collect())
}
