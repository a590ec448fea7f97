//! Expensive schemas: no check of them takes long.

use serde_json::json;

use super::*;

/// The outcome of a check; its cost was counted before the check ran.
#[derive(Debug, PartialEq, Eq)]
enum Done {
    /// Not checked: the server decides.
    Passed,
    Fine,
    Refused,
}

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "cases read better")]
fn done(schema: Value, arguments: Value) -> Done {
    let checker = Checker::new(&schema.to_string());
    let arguments = arguments.as_object().unwrap();
    let value = Value::Object(arguments.clone());
    let is_looked_at = |ready: &Ready| ready.errors(&value).is_some();
    match checker.check(arguments) {
        Ok(_) if !checker.ready.as_ref().is_some_and(is_looked_at) => Done::Passed,
        Ok(_) => Done::Fine,
        Err(violations) => {
            assert!(!violations.is_empty());
            Done::Refused
        }
    }
}

/// Returns `levels` definitions, each of which references the next one twice, with an integer at
/// the end.
fn fan(levels: usize, each: impl Fn(Value) -> Value) -> Value {
    let mut definitions = Map::new();
    for level in 0..levels {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        definitions.insert(format!("d{level}"), each(next));
    }
    definitions.insert(format!("d{levels}"), json!({"type": "integer"}));
    json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions})
}

#[test]
fn definitions_that_double_are_checked_while_few_and_passed_when_many() {
    for keyword in ["anyOf", "oneOf", "allOf"] {
        let fan = |levels| fan(levels, |next| json!({keyword: [next, next]}));
        for levels in [1, 3, 6, 10] {
            assert_eq!(
                done(fan(levels), json!({"a": []})),
                Done::Refused,
                "{keyword} {levels}"
            );
        }
        for levels in 17..=60 {
            assert_eq!(
                done(fan(levels), json!({"a": []})),
                Done::Passed,
                "{keyword} {levels}"
            );
        }
    }
}

#[test]
fn every_way_to_name_another_schema_is_counted() {
    type Mutation = (&'static str, fn(Value) -> Value);
    let ways: [Mutation; 12] = [
        ("not", |next| json!({"not": {"allOf": [next, next]}})),
        ("if", |next| json!({"if": next, "then": next, "else": next})),
        (
            "dependentSchemas",
            |next| json!({"dependentSchemas": {"a": next, "b": next}, "allOf": [next]}),
        ),
        (
            "unevaluatedProperties",
            |next| json!({"unevaluatedProperties": false, "allOf": [next]}),
        ),
        (
            "beside",
            |next| json!({"$ref": next["$ref"], "allOf": [next]}),
        ),
        (
            "dynamic",
            |next| json!({"$dynamicRef": next["$ref"], "allOf": [next]}),
        ),
        (
            "items",
            |next| json!({"items": next, "contains": next, "anyOf": [next, next]}),
        ),
        (
            "members",
            |next| json!({"additionalProperties": next, "patternProperties": {"": next}, "anyOf": [next, next]}),
        ),
        (
            "names",
            |next| json!({"propertyNames": next, "anyOf": [next, next]}),
        ),
        (
            "dependencies",
            |next| json!({"dependencies": {"x": next}, "oneOf": [next]}),
        ),
        (
            "anchor",
            |next| json!({"anyOf": [next, next], "$anchor": "x"}),
        ),
        (
            "deep",
            |next| json!({"anyOf": [{"allOf": [next]}, {"allOf": [next]}]}),
        ),
    ];
    for (name, way) in ways {
        assert_eq!(
            done(fan(70, way), json!({"a": {"x": [[]]}})),
            Done::Passed,
            "{name}"
        );
        assert_ne!(
            done(fan(2, way), json!({"a": {"x": [[]]}})),
            Done::Passed,
            "{name}"
        );
    }
}

#[test]
fn what_doubles_with_each_level_of_a_value_is_counted_there() {
    let schema = json!({"properties": {"a": {"$ref": "#/$defs/list"}}, "$defs": {
        "list": {"anyOf": [{"items": {"$ref": "#/$defs/list"}}, {"items": {"$ref": "#/$defs/list"}}],
            "type": "array"}}});
    let nested = |levels| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    assert_eq!(done(schema.clone(), json!({"a": nested(4)})), Done::Refused);
    assert_eq!(done(schema, json!({"a": nested(60)})), Done::Passed);

    let once = json!({"properties": {"a": {"$ref": "#/$defs/list"}}, "$defs": {
        "list": {"type": "array", "items": {"$ref": "#/$defs/list"}}}});
    assert_eq!(done(once, json!({"a": nested(60)})), Done::Refused);
}

#[test]
fn dynamic_references_and_anchors_are_followed() {
    let schema = |times: usize| {
        json!({
            "properties": {"a": {"$ref": "#tree"}},
            "$defs": {"tree": {
                "$anchor": "tree", "$dynamicAnchor": "node", "type": "array",
                "allOf": vec![json!({"items": {"$dynamicRef": "#node"}}); times],
            }},
        })
    };
    let nested = (0..60).fold(json!(1), |inner, _| json!([inner]));
    assert_eq!(done(schema(1), json!({"a": nested})), Done::Refused);
    assert_eq!(done(schema(2), json!({"a": nested})), Done::Passed);
}

#[test]
fn circles_that_never_come_to_a_value_are_passed() {
    let all = json!([{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}, {"$ref": "#/$defs/c"}]);
    let each = json!({"anyOf": all});
    let schema = json!({"anyOf": all, "$defs": {"a": each, "b": each, "c": each}});
    assert_eq!(done(schema, json!({"a": 1})), Done::Passed);
    assert_eq!(
        done(json!({"allOf": [{"$ref": "#"}]}), json!({"a": 1})),
        Done::Passed
    );
}

#[test]
fn a_chain_of_thousands_of_references_does_not_end_the_process() {
    for levels in [180, 200, 1_000, 20_000] {
        let chain = fan(levels, |next| json!({"allOf": [next]}));
        let expected = if levels < 190 {
            Done::Refused
        } else {
            Done::Passed
        };
        let on_a_small_stack = std::thread::Builder::new()
            .stack_size(2 << 20)
            .spawn(move || done(chain, json!({"a": []})));
        assert_eq!(
            on_a_small_stack.unwrap().join().unwrap(),
            expected,
            "{levels}"
        );
    }
}

#[test]
fn a_document_of_very_many_definitions_is_not_compiled() {
    let chain = |levels| fan(levels, |next| json!({"allOf": [next]}));
    assert!(!Checker::new(&chain(1_000).to_string()).is_blind());
    assert!(Checker::new(&chain(20_000).to_string()).is_blind());
}

#[test]
fn nested_looks_at_what_is_left_over_are_not_compiled() {
    let nested = |levels| {
        (0..levels).fold(
            json!({"type": "object"}),
            |inner, _| json!({"allOf": [inner], "unevaluatedProperties": false}),
        )
    };
    assert_eq!(done(nested(2), json!({"a": 1})), Done::Refused);
    assert!(Checker::new(&nested(40).to_string()).is_blind());
}

#[test]
fn patterns_are_counted_by_what_they_repeat() {
    let pattern = |pattern: &str| json!({"properties": {"a": {"pattern": pattern}}});
    let long = json!({"a": "a".repeat(50_000)});
    assert_eq!(done(pattern("^[a-z]{1,64}$"), long.clone()), Done::Refused);
    assert_eq!(
        done(pattern("(a{1,50}){1,50}b"), long.clone()),
        Done::Passed
    );
    assert!(Checker::new(&pattern("((a{1,99}){1,99}){1,99}").to_string()).is_blind());
    // The lookahead requires the backtracking matcher.
    assert_eq!(
        done(pattern("^(?!x)(a|aa)+$"), json!({"a": "b"})),
        Done::Refused
    );
    assert_eq!(done(pattern("^(?!x)((a|aa)+)+$"), long), Done::Passed);
    let keys = json!({"patternProperties": {"(a{1,50}){1,50}b": false}});
    assert_eq!(done(keys, json!({"a".repeat(100_000): 1})), Done::Passed);
}

#[test]
fn large_values_are_checked_as_long_as_that_is_linear() {
    let numbers: Vec<usize> = (0..20_000).collect();
    let unique = json!({"properties": {"a": {"uniqueItems": true, "items": {"type": "integer"}}}});
    let mut twice = numbers.clone();
    twice.push(7);
    assert_eq!(done(unique.clone(), json!({"a": numbers})), Done::Fine);
    assert_eq!(done(unique, json!({"a": twice})), Done::Refused);

    let one_of_many = json!({"properties": {"a": {"items": {"enum": numbers}}}});
    assert_eq!(done(one_of_many.clone(), json!({"a": [-1]})), Done::Refused);
    assert_eq!(done(one_of_many, json!({"a": numbers})), Done::Passed);
}

#[test]
fn alternatives_of_a_long_text_are_not_copied_without_end() {
    let alternatives: Vec<Value> = (0..500).map(|nth| json!({"const": nth})).collect();
    let schema = json!({"properties": {"a": {"anyOf": alternatives}}});
    assert_eq!(done(schema.clone(), json!({"a": "x"})), Done::Refused);
    assert_eq!(
        done(schema, json!({"a": "x".repeat(1 << 20)})),
        Done::Passed
    );
}

#[test]
fn a_part_with_an_address_of_its_own_is_for_the_server() {
    let schema = |id: &str| {
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "$id": "https://example.com/root", "properties": {"a": {"$ref": "#/$defs/x"}},
            "$defs": {"y": {}, "x": {"$id": id, "type": "integer"}}})
    };
    assert!(Checker::new(&schema("https://example.com/x").to_string()).is_blind());
    assert_eq!(done(schema("#x"), json!({"a": []})), Done::Refused);
}

#[test]
fn a_small_call_is_quick_and_a_large_one_is_not() {
    let schema = json!({"properties": {"a": {"type": "string"}, "b": {
        "items": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}}, "required": ["a"]});
    let checker = Checker::new(&schema.to_string());
    let is_quick = |arguments: Value| checker.is_quick(arguments.as_object().unwrap());
    assert!(is_quick(
        json!({"a": "x".repeat(10_000), "b": [1, 2, null]})
    ));
    assert!(!is_quick(json!({"a": "x", "b": vec![1; 10_000]})));
}

#[test]
fn an_example_of_a_schema_that_doubles_is_none() {
    let mut schema = fan(40, |next| json!({"anyOf": [next, next], "not": {}}));
    schema["required"] = json!(["a"]);
    assert_eq!(crate::example(&schema.to_string()), None);
}

#[test]
fn an_example_stays_small_however_often_its_parts_are_named() {
    let names: Vec<String> = (0..5_000).map(|nth| format!("p{nth}")).collect();
    let text = "x".repeat(100_000);
    let of = |schema: Value| {
        let same = json!({"$ref": "#/$defs/x"});
        let properties: Map<String, Value> = names
            .iter()
            .map(|name| (name.clone(), same.clone()))
            .collect();
        json!({"properties": properties, "required": names, "$defs": {"x": schema}}).to_string()
    };
    for schema in [json!({"default": text}), json!({"enum": [text]})] {
        let example = crate::example(&of(schema)).map_or(0, |example| example.to_string().len());
        assert!(example < 1_000_000, "{example}");
    }
}
