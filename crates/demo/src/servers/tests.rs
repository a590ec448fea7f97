//! One `check` for every demo server, and properties of all of them.

use serde_json::{Value, json};
use std::collections::BTreeSet;

use super::{
    NAMES,
    demo_server::{DemoServer, ToolOutcome, ToolReply},
    server,
};

/// Calls one tool of a server as a client would.
#[track_caller]
pub(super) fn call(server: &DemoServer, tool: &str, arguments: Value) -> ToolOutcome {
    let Value::Object(arguments) = arguments else {
        panic!("arguments are an object");
    };
    let tool = server
        .find(tool)
        .unwrap_or_else(|| panic!("{} has no `{tool}`", server.name));
    (tool.answer)(arguments)
}

#[track_caller]
pub(super) fn text_of(answer: ToolOutcome) -> String {
    match answer {
        Ok(ToolReply::Text(text)) => text,
        other => panic!("not a text: {other:?}"),
    }
}

#[track_caller]
pub(super) fn structure_of(answer: ToolOutcome) -> Value {
    match answer {
        Ok(ToolReply::Structured(value)) => value,
        other => panic!("not structured: {other:?}"),
    }
}

#[test]
fn every_name_has_its_server_and_no_other_name_has_one() {
    for &name in NAMES {
        assert_eq!(server(name).unwrap().name, name);
    }
    assert!(server("nothing").is_none());
}

#[test]
fn tools_are_listed_once_and_say_what_they_do() {
    for &name in NAMES {
        let mut seen = BTreeSet::new();
        for tool in server(name).unwrap().tools {
            let definition = &tool.definition;
            let what = format!("{name}/{}", definition.name);
            assert!(
                seen.insert(definition.name.clone()),
                "{what} is listed twice"
            );
            assert!(
                definition.description.as_ref().unwrap().len() > 40,
                "the description of {what} is too short"
            );
            let hints = definition.annotations.as_ref().unwrap();
            assert!(
                hints.read_only_hint.is_some(),
                "{what} has no `readOnlyHint`"
            );
            check_schema(&what, &Value::Object((*definition.input_schema).clone()));
        }
    }
}

/// Checks that every property is described and every required one exists.
#[track_caller]
fn check_schema(what: &str, schema: &Value) {
    assert_eq!(schema["type"], "object", "{what}");
    assert_eq!(
        schema["additionalProperties"], false,
        "{what} accepts unknown keys"
    );
    let properties = schema["properties"].as_object().unwrap();
    for (name, property) in properties {
        assert!(property["type"].is_string(), "{what}: `{name}` has no type");
        assert!(
            property["description"].is_string(),
            "{what}: `{name}` is not described"
        );
    }
    for name in schema["required"].as_array().unwrap() {
        assert!(
            properties.contains_key(name.as_str().unwrap()),
            "{what} requires the unknown {name}"
        );
    }
}

#[test]
fn a_default_in_the_schema_is_the_default_in_the_code() {
    for &name in NAMES {
        for tool in server(name).unwrap().tools {
            let tool_name = &*tool.definition.name;
            if ["crash", "noisy"].contains(&tool_name) {
                continue; // Their results depend on external state or change it.
            }
            let schema = Value::Object((*tool.definition.input_schema).clone());
            let answers = [false, true].map(|with_defaults| {
                let fresh = server(name).unwrap();
                call(&fresh, tool_name, sample(&schema, with_defaults))
            });
            assert_eq!(answers[0], answers[1], "{name}/{tool_name}");
        }
    }
}

/// Returns arguments for the required properties, optionally with every default.
fn sample(schema: &Value, with_defaults: bool) -> Value {
    let mut arguments = json!({});
    for (name, property) in schema["properties"].as_object().unwrap() {
        let required = schema["required"]
            .as_array()
            .unwrap()
            .iter()
            .any(|it| it == name);
        if let (true, Some(value)) = (with_defaults, property.get("default")) {
            arguments[name] = value.clone();
        } else if required {
            arguments[name] = match property["type"].as_str().unwrap() {
                "integer" => json!(1),
                "array" => json!([]),
                _ => property["examples"].get(0).cloned().unwrap_or(json!("a b")),
            };
        }
    }
    arguments
}

#[test]
fn a_missing_argument_is_refused_by_name() {
    let refusal = call(&server("notes").unwrap(), "search_notes", json!({})).unwrap_err();
    assert_eq!(refusal, "bad arguments: missing field `query`");
}
