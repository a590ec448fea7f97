use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::schema::tests::any_schema;

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "cases read better")]
fn check(schema: Value, expected: Value) {
    assert_eq!(example(&schema.to_string()), Some(expected));
}

#[expect(clippy::needless_pass_by_value, reason = "cases read better")]
fn required(name: &str, schema: Value) -> Value {
    json!({"type": "object", "properties": {name: schema}, "required": [name]})
}

#[test]
fn values_come_from_the_schema_before_they_are_made() {
    for (name, schema, expected) in schema_cases() {
        check(required(name, schema), json!({name: expected}));
    }
}

fn schema_cases() -> Vec<(&'static str, Value, Value)> {
    vec![
        (
            "a",
            json!({"type": "string", "default": "d", "examples": ["e"]}),
            json!("e"),
        ),
        ("a", json!({"type": "string", "default": "d"}), json!("d")),
        (
            "a",
            json!({"type": "integer", "default": "wrong"}),
            json!(1),
        ),
        ("a", json!({"enum": ["x", "y"]}), json!("x")),
        ("a", json!({"const": 7}), json!(7)),
        ("a", json!({"type": "boolean"}), json!(true)),
        ("a", json!({"type": ["null", "integer"]}), json!(1)),
        (
            "a",
            json!({"anyOf": [{"type": "null"}, {"type": "integer", "minimum": 3}]}),
            json!(3),
        ),
        (
            "a",
            json!({"type": "integer", "exclusiveMinimum": 9, "multipleOf": 4}),
            json!(12),
        ),
        ("a", json!({"type": "number", "maximum": -2.5}), json!(-2.5)),
        (
            "a",
            json!({"type": "string", "minLength": 12}),
            json!("exampleexamp"),
        ),
        ("a", json!({"type": "string", "maxLength": 2}), json!("ex")),
        (
            "a",
            json!({"type": "string", "pattern": "^[A-Z]+-[0-9]+$"}),
            json!("AB-1"),
        ),
        (
            "a",
            json!({"type": "string", "format": "date"}),
            json!("2026-01-31"),
        ),
        (
            "userEmail",
            json!({"type": "string"}),
            json!("ada@example.com"),
        ),
        ("message_id", json!({"type": "string"}), json!("abc123")),
        (
            "urls",
            json!({"type": "array", "items": {"type": "string"}}),
            json!(["https://example.com"]),
        ),
        (
            "a",
            json!({"type": "array", "items": {"type": "integer"}, "minItems": 2, "uniqueItems": true}),
            json!([1, 2]),
        ),
        (
            "a",
            json!({"type": "object", "properties": {"b": {"type": "integer"}}}),
            json!({"b": 1}),
        ),
        (
            "a",
            required("b", json!({"type": "integer"})),
            json!({"b": 1}),
        ),
    ]
}

#[test]
fn what_is_not_required_is_left_out_unless_it_is_needed() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
    check(schema.clone(), json!({}));
    let mut needed = schema;
    needed["minProperties"] = json!(1);
    check(needed, json!({"a": 1}));
}

#[test]
fn no_example_is_better_than_a_wrong_one() {
    for schema in [
        required(
            "a",
            json!({"type": "string", "pattern": "^nobody guesses this [0-9]{17}$"}),
        ),
        required("a", json!(false)),
        required("a", json!({"$ref": "https://example.com/a.json"})),
        json!({"properties": {"a": {"$ref": "#/$defs/a"}}, "required": ["a"],
            "$defs": {"a": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "required": ["a"]}}}),
    ] {
        assert_eq!(example(&schema.to_string()), None, "{schema}");
    }
    assert_eq!(example("nonsense"), None);
}

proptest! {
    #[test]
    fn an_example_passes_the_check(schema in any_schema()) {
        let schema = schema.to_string();
        if let Some(Value::Object(arguments)) = example(&schema) {
            let checker = Checker::new(&schema);
            prop_assert!(!checker.is_blind());
            prop_assert_eq!(checker.check(&arguments), Ok(None));
        }
    }
}
