//! Reads a JSON Schema for people: its parameters, its smallest text.

mod reading;
mod shape;

use serde::de::IgnoredAny;
use serde_json::Value;

pub(crate) use reading::{Field, Node, Reading, resolve_pointer};
pub(crate) use shape::{Detail, Shape, literals_text, name_text};

/// One property of an input schema, for search and for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its description; empty if it has none.
    pub description: String,
    /// True if a call has to contain it.
    pub required: bool,
    /// The values an `enum` or `const` allows, as plain text; of the items where it is an array.
    pub enum_values: Vec<String>,
}

/// The most enum values kept for one parameter; further ones add nothing to a search.
const ENUM_VALUES_MAX: usize = 256;

/// The parameters of an input schema, required ones first, else in the schema's order.
///
/// Empty for a schema that cannot be read.
pub fn parameters(schema: &str) -> Vec<Parameter> {
    let root: Value = serde_json::from_str(schema).unwrap_or_default();
    let reading = Reading::new(&root);
    let fields = reading.root().fields().into_iter();
    fields.map(|field| parameter(&field)).collect()
}

/// The types of the [`parameters`], in their order, as a signature tells them: `string[]`,
/// `"a"|"b"`, `{x: number}`, with the default behind a `=`.
pub fn parameter_types(schema: &str) -> Vec<String> {
    let root: Value = serde_json::from_str(schema).unwrap_or_default();
    let reading = Reading::new(&root);
    let fields = reading.root().fields().into_iter();
    fields.map(|field| field.type_text(Detail::FULL)).collect()
}

fn parameter(field: &Field<'_>) -> Parameter {
    let text = |value: &&Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let shape = Shape::of(field.node);
    let literals = shape.literals().into_iter();
    Parameter {
        name: field.name.to_owned(),
        description: field.node.description().unwrap_or_default().to_owned(),
        required: field.required,
        enum_values: literals.take(ENUM_VALUES_MAX).map(|v| text(&v)).collect(),
    }
}

/// The schema without white space between its tokens; nothing else is changed.
///
/// It works on bytes, so number text, escapes, key order and duplicate keys survive. A text that
/// is no JSON comes back as it is.
pub fn minified(schema: &str) -> String {
    if serde_json::from_str::<IgnoredAny>(schema).is_err() {
        return schema.to_owned();
    }
    let mut small = String::with_capacity(schema.len());
    let mut rest = schema;
    while let Some(start) = rest.find('"') {
        let (outside, string) = rest.split_at(start);
        push_dense(&mut small, outside);
        let (string, after) = string.split_at(string_end(string));
        small.push_str(string);
        rest = after;
    }
    push_dense(&mut small, rest);
    small
}

fn push_dense(small: &mut String, text: &str) {
    text.split_ascii_whitespace()
        .for_each(|part| small.push_str(part));
}

/// The end of the string that `text` begins with, its closing quote included.
fn string_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while let Some(found) = bytes
        .get(at..)
        .and_then(|rest| rest.iter().position(|byte| matches!(byte, b'"' | b'\\')))
    {
        at += found;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

#[cfg(test)]
pub(crate) mod tests;
