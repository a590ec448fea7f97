//! The parameters of a JSON Schema, and its minified text.

mod reader;
mod shape;

use serde::de::IgnoredAny;
use serde_json::Value;

use crate::digest::end_of_token;

pub(crate) use reader::{Field, SchemaNode, SchemaReader, resolve_pointer};
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
    /// The values of `enum` or `const`, as plain text; for an array, those of its items.
    pub enum_values: Vec<String>,
}

/// The most enum values of one parameter: more of them do not improve a search.
const ENUM_VALUES_MAX: usize = 256;

/// Returns the parameters of an input schema, required ones first, otherwise in the schema's order.
/// The list is empty if the schema cannot be parsed.
pub fn parameters(schema: &str) -> Vec<Parameter> {
    map_fields(schema, parameter)
}

/// Returns the types of the [`parameters`], in their order, as a signature shows them: `string[]`,
/// `"a"|"b"`, `{x: number}`, with the default after `=`.
pub fn parameter_types(schema: &str) -> Vec<String> {
    map_fields(schema, |field| field.type_text(Detail::FULL))
}

fn map_fields<T>(schema: &str, map: impl Fn(&Field<'_>) -> T) -> Vec<T> {
    let root: Value = serde_json::from_str(schema).unwrap_or_default();
    let reader = SchemaReader::new(&root);
    reader.root().fields().iter().map(map).collect()
}

fn parameter(field: &Field<'_>) -> Parameter {
    let shape = Shape::of(field.node);
    let literals = shape.literals().into_iter();
    Parameter {
        name: field.name.to_owned(),
        description: field.node.description().unwrap_or_default().to_owned(),
        required: field.required,
        enum_values: literals.take(ENUM_VALUES_MAX).map(plain_text).collect(),
    }
}

/// Returns a string without quotes, and any other value as JSON.
pub(crate) fn plain_text(value: &Value) -> String {
    let text = value.as_str().map(str::to_owned);
    text.unwrap_or_else(|| value.to_string())
}

/// Removes the white space between the tokens of a schema; nothing else changes.
///
/// Works on the text, so the spelling of numbers, escapes, key order and duplicate keys are
/// preserved. A text that is not JSON is returned unchanged.
pub fn minified(schema: &str) -> String {
    if serde_json::from_str::<IgnoredAny>(schema).is_err() {
        return schema.to_owned();
    }
    let mut small = String::with_capacity(schema.len());
    let mut at = 0;
    while let Some(byte) = schema.as_bytes().get(at) {
        let end = end_of_token(schema.as_bytes(), at);
        if !byte.is_ascii_whitespace() {
            small.push_str(&schema[at..end]);
        }
        at = end;
    }
    small
}

#[cfg(test)]
pub(crate) mod tests;
