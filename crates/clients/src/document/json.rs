//! JSON, with comments and without.

use jsonc_parser::{CollectOptions, ParseOptions, ast, common::Ranged as _, parse_to_ast};
use serde_json::{Map, Number, Value};

use super::{
    SyntaxError,
    error::EditError,
    flow::{Comments, Flow, Layout},
    lines::{Edit, indent_step, newline_of},
    node::{Kind, Member, Node},
    render,
    slot::{Made, Removal, Slot},
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

pub(super) fn parse(text: &str) -> Result<Option<Node>, SyntaxError> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &OPTIONS);
    let parsed = parsed.map_err(|error| SyntaxError {
        line: error.line_display(),
        what: error.kind().to_string(),
    })?;
    Ok(parsed.value.as_ref().map(convert))
}

fn convert(value: &ast::Value<'_>) -> Node {
    let range = value.range();
    let kind = match value {
        ast::Value::Object(object) => {
            Kind::Map(object.properties.iter().map(convert_member).collect())
        }
        ast::Value::Array(array) => Kind::List(array.elements.iter().map(convert).collect()),
        ast::Value::StringLit(text) => Kind::Scalar(text.value.as_ref().into()),
        ast::Value::NumberLit(number) => {
            let parsed: Result<Number, _> = number.value.parse();
            Kind::Scalar(parsed.map_or_else(|_| number.value.into(), Value::Number))
        }
        ast::Value::BooleanLit(switch) => Kind::Scalar(switch.value.into()),
        ast::Value::NullKeyword(_) => Kind::Scalar(Value::Null),
    };
    Node {
        span: range.start..range.end,
        kind,
        is_flow: true,
    }
}

fn convert_member(property: &ast::ObjectProp<'_>) -> Member {
    let range = property.name.range();
    Member {
        key: property.name.as_str().to_owned(),
        key_span: range.start..range.end,
        value: convert(&property.value),
    }
}

pub(super) fn flow_of<'a>(text: &'a str, node: &Node, comments: Comments) -> Flow<'a> {
    Flow {
        text,
        inside: node.span.start + 1..node.span.end - 1,
        items: node.spans(),
        comments,
    }
}

pub(super) fn add(
    text: &str,
    slot: Slot<'_>,
    name: &str,
    entry: &Value,
) -> Result<(Vec<Edit>, Made), EditError> {
    let newline = newline_of(text);
    let Some(root) = parse(text)? else {
        let whole = wrap(slot.key, slot.list, name, entry);
        let whole = render::json_lines(&whole, "", "  ", newline);
        let made = Made {
            tables: slot.key.len(),
            was_null: false,
        };
        return Ok((
            vec![Edit::insert(text.len(), format!("{whole}{newline}"))],
            made,
        ));
    };
    let reached = root.reach(slot.key);
    let tables = slot.key.len() - reached.depth;
    let rest = &slot.key[reached.depth..];
    if reached.node.is_null() {
        let value = wrap(rest, slot.list, name, entry);
        let indent = super::lines::indent_of(text, reached.node.span.start);
        let text = render::json_lines(&value, indent, indent_step(text), newline);
        let edit = Edit {
            span: reached.node.span.clone(),
            text,
        };
        return Ok((
            vec![edit],
            Made {
                tables,
                was_null: true,
            },
        ));
    }
    let flow = flow_of(text, reached.node, Comments::Slashes);
    let layout = flow.layout();
    let render = |value: &Value| match &layout {
        Layout::Inline => render::json_inline(value),
        Layout::Lines(indent) => render::json_lines(value, indent, indent_step(text), newline),
    };
    let item = match rest.split_first() {
        Some((key, rest)) => {
            format!(
                "{}: {}",
                render::quote(key),
                render(&wrap(rest, slot.list, name, entry))
            )
        }
        None if slot.list => render(entry),
        None => format!("{}: {}", render::quote(name), render(entry)),
    };
    Ok((
        flow.insert(&item, &layout),
        Made {
            tables,
            was_null: false,
        },
    ))
}

/// The entry in all the tables that are not there yet.
pub(super) fn wrap(key: &[String], list: bool, name: &str, entry: &Value) -> Value {
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

pub(super) fn remove(text: &str, slot: Slot<'_>, name: &str) -> Result<Option<Removal>, EditError> {
    let Some(root) = parse(text)? else {
        return Ok(None);
    };
    let reached = root.reach(slot.key);
    if reached.depth < slot.key.len() {
        return Ok(None);
    }
    Ok(reached.node.position(name).map(|index| {
        let flow = flow_of(text, reached.node, Comments::Slashes);
        let raw = text[flow.items[index].clone()].to_owned();
        Removal {
            edits: flow.remove(index),
            raw,
        }
    }))
}

pub(super) fn make_null(text: &str, key: &[String]) -> Result<Vec<Edit>, EditError> {
    let root = parse(text)?;
    Ok(root.map_or_else(Vec::new, |root| {
        let span = root.reach(key).node.span.clone();
        vec![Edit {
            span,
            text: "null".to_owned(),
        }]
    }))
}
