//! `config/schema.json`, by which editors check and complete the file: made from the table of keys.

use serde_json::{Map, Value, json};

use super::{check_committed, in_tree};
use crate::keys::{self, KeyMatch, KeySpec, ValueKind};

fn make_schema() -> Value {
    let Value::Object(mut schema) = describe_table("") else {
        unreachable!("a table is an object");
    };
    schema.insert(
        "$schema".to_owned(),
        "http://json-schema.org/draft-07/schema#".into(),
    );
    schema.insert("title".to_owned(), "The configuration of proxy".into());
    schema.into()
}

fn describe_table(pattern: &str) -> Value {
    let mut properties = Map::new();
    let mut others = Value::Bool(false);
    for name in keys::names(pattern) {
        let path = match pattern {
            "" => name.to_owned(),
            _ => format!("{pattern}.{name}"),
        };
        let described = match keys::find(&path) {
            Some(KeyMatch::Value(key)) => describe_key(key),
            _ => describe_table(&path),
        };
        if ["NAME", "TOOL"].contains(&name) {
            others = described;
        } else {
            properties.insert(name.to_owned(), described);
        }
    }
    json!({ "type": "object", "properties": properties, "additionalProperties": others })
}

fn describe_key(key: &KeySpec) -> Value {
    let mut described = describe_value(&key.kind);
    described["description"] = key.meaning.into();
    if let Some(default) = key.default {
        described["default"] = serde_json::from_str(default).unwrap();
    }
    described
}

fn describe_value(kind: &ValueKind) -> Value {
    match kind {
        ValueKind::Switch => json!({ "type": "boolean" }),
        ValueKind::Count(count) => {
            json!({ "type": "integer", "minimum": count.min, "maximum": count.max })
        }
        ValueKind::Choice(words) => json!({ "enum": words }),
        ValueKind::List(item) => json!({ "type": "array", "items": describe_value(item) }),
        ValueKind::Rules | ValueKind::Quotas => {
            json!({ "type": "array", "items": { "type": "object" } })
        }
        ValueKind::Arguments => json!({ "type": "object" }),
        ValueKind::ArgumentSettings => {
            json!({ "type": "object", "additionalProperties": { "type": "object" } })
        }
        ValueKind::Patterns
        | ValueKind::Variables
        | ValueKind::Headers
        | ValueKind::Tokens
        | ValueKind::TokenFiles => {
            json!({ "type": "object", "additionalProperties": { "type": "string" } })
        }
        _ => json!({ "type": "string" }),
    }
}

#[test]
fn the_schema_is_made_from_the_keys() {
    let text = serde_json::to_string_pretty(&make_schema()).unwrap();
    check_committed("config/schema.json", &(text + "\n"));
}

#[test]
fn every_example_is_valid_and_a_mistake_is_not() {
    let validator = jsonschema::options()
        .offline()
        .build(&make_schema())
        .unwrap();
    let is_valid = |text: &str| {
        let table: toml::Table = toml::from_str(text).unwrap();
        validator.is_valid(&serde_json::to_value(table).unwrap())
    };
    for name in ["commands", "developer", "every-key", "minimal"] {
        let path = in_tree(&format!("config/{name}.toml"));
        assert!(is_valid(&std::fs::read_to_string(path).unwrap()), "{name}");
    }
    for mistake in [
        "pni = \"hold\"",
        "pin = \"held\"",
        "[results]\nmax_tokens = 0",
        "[servers.a]\ncommand = [\"npx\"]",
        "[servers.a.overlay.t]\nhidden = \"yes\"",
    ] {
        assert!(!is_valid(mistake), "{mistake}");
    }
}
