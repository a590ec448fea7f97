//! `nullable: true`, by which schemas of `OpenAPI` 3.0 admit `null` beside their type.

use serde_json::{Map, Value, json};

use crate::header_arguments::MAP_KEYWORDS;

/// Keywords that hold values and no schemas.
const VALUE_KEYWORDS: [&str; 5] = ["const", "default", "enum", "example", "examples"];

/// Keywords that refuse `null` although the type admits it.
const COMBINING_KEYWORDS: [&str; 8] = [
    "$ref", "allOf", "anyOf", "oneOf", "not", "if", "then", "else",
];

/// Writes each `nullable: true` in a schema as JSON Schema knows it. Servers mean it so: `null` clears the
/// field, and to leave the field out is another request. The recursion is bounded, because the parser has a
/// nesting limit.
pub(super) fn admit_null(schema: &mut Value) {
    match schema {
        Value::Array(parts) => parts.iter_mut().for_each(admit_null),
        Value::Object(keywords) => {
            for (keyword, value) in keywords.iter_mut() {
                let keyword = keyword.as_str();
                match value {
                    Value::Object(named)
                        if keyword == "properties" || MAP_KEYWORDS.contains(&keyword) =>
                    {
                        named.values_mut().for_each(admit_null);
                    }
                    other if !VALUE_KEYWORDS.contains(&keyword) => admit_null(other),
                    _ => {}
                }
            }
            if keywords.get("nullable") == Some(&Value::Bool(true)) {
                admit_here(keywords);
            }
        }
        _ => {}
    }
}

fn admit_here(keywords: &mut Map<String, Value>) {
    let add_null = |list: &mut Vec<Value>, null: Value| {
        if !list.contains(&null) {
            list.push(null);
        }
    };
    match keywords.get_mut("type") {
        Some(Value::Array(names)) => add_null(names, "null".into()),
        Some(name) if *name != "null" => *name = json!([name, "null"]),
        _ => {}
    }
    if let Some(value) = keywords.shift_remove("const") {
        keywords.insert("enum".to_owned(), json!([value]));
    }
    if let Some(Value::Array(options)) = keywords.get_mut("enum") {
        add_null(options, Value::Null);
    }
    let combining = COMBINING_KEYWORDS.iter();
    let combining = combining.filter_map(|keyword| keywords.shift_remove_entry(*keyword));
    let combining: Map<String, Value> = combining.collect();
    if !combining.is_empty() {
        keywords.insert("anyOf".to_owned(), json!([combining, {"type": "null"}]));
    }
}
