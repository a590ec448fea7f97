//! JSON, with comments and without, read and edited by `jsonc-parser`.

use jsonc_parser::{
    CollectOptions, ParseOptions,
    cst::{CstInputValue, CstRootNode},
    errors::ParseError,
    parse_to_ast,
};
use serde_json::Value;

use super::error::{EditError, SyntaxError};

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

impl From<ParseError> for SyntaxError {
    fn from(error: ParseError) -> Self {
        Self {
            line: error.line_display(),
            what: error.kind().to_string(),
        }
    }
}

pub(super) fn read(text: &str) -> Result<Value, SyntaxError> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &OPTIONS)?;
    Ok(parsed.value.map_or(Value::Null, Value::from))
}

/// Sets or removes the member of this name in the table that the keys lead to.
pub(super) fn edit(
    text: &str,
    key: &[String],
    name: &str,
    entry: Option<&Value>,
) -> Result<String, EditError> {
    let root = CstRootNode::parse(text, &OPTIONS).map_err(SyntaxError::from)?;
    let holder = key.iter().fold(root.object_value_or_set(), |table, key| {
        table.object_value_or_set(key)
    });
    match (entry, holder.get(name)) {
        (Some(entry), Some(member)) => member.set_value(input(entry)),
        (Some(entry), None) => drop(holder.append(name, input(entry))),
        // Parsers read the last of several members of one name.
        (None, _) => {
            while let Some(member) = holder.get(name) {
                member.remove();
            }
        }
    }
    Ok(root.to_string())
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(value) => CstInputValue::Number(value.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(key, value)| (key.clone(), input(value)));
            CstInputValue::Object(members.collect())
        }
    }
}
