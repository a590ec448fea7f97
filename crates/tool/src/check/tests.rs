use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::schema::tests::any_schema;

/// Checks arguments against a schema; `expected` is `ok`, the coerced arguments, or the violations,
/// one per line.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "cases read better")]
fn check(schema: Value, arguments: Value, expected: &str) {
    let checker = Checker::new(&schema.to_string());
    assert!(!checker.is_blind(), "{schema}");
    let told = match checker.check(arguments.as_object().unwrap()) {
        Ok(None) => "ok".to_owned(),
        Ok(Some(arguments)) => Value::Object(arguments).to_string(),
        Err(violations) => lines(&violations),
    };
    assert_eq!(told, expected);
}

fn lines(violations: &[Violation]) -> String {
    let lines: Vec<String> = violations.iter().map(Violation::to_string).collect();
    lines.join("\n")
}

#[expect(clippy::needless_pass_by_value, reason = "cases read better")]
fn of(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

#[test]
fn values_with_one_reading_are_read() {
    let one = |schema: Value| of(json!({"a": schema}));
    let integer = json!({"type": "integer"});
    let text = json!({"type": "string"});
    let list = |items: &Value| json!({"type": "array", "items": items});
    let cases = [
        (integer.clone(), json!(5), "ok"),
        (integer.clone(), json!("5"), r#"{"a":5}"#),
        (integer.clone(), json!(" -7 "), r#"{"a":-7}"#),
        (integer.clone(), json!(null), "{}"),
        (json!({"type": "number"}), json!("1.5"), r#"{"a":1.5}"#),
        (json!({"type": "boolean"}), json!("True"), r#"{"a":true}"#),
        (json!({"type": "boolean"}), json!("false"), r#"{"a":false}"#),
        (
            json!({"type": "object"}),
            json!("{\"b\":1}"),
            r#"{"a":{"b":1}}"#,
        ),
        (list(&integer), json!("[1,2]"), r#"{"a":[1,2]}"#),
        (list(&integer), json!(["1", 2]), r#"{"a":[1,2]}"#),
        (list(&integer), json!("4"), r#"{"a":[4]}"#),
        (list(&text), json!("bug"), r#"{"a":["bug"]}"#),
        (
            list(&json!({"type": "object"})),
            json!({"b": 1}),
            r#"{"a":[{"b":1}]}"#,
        ),
        (text.clone(), json!(123), r#"{"a":"123"}"#),
        (text.clone(), json!(true), r#"{"a":"true"}"#),
        (json!({"enum": [1, 2]}), json!("2"), r#"{"a":2}"#),
        (json!({"enum": ["1", "2"]}), json!(2), r#"{"a":"2"}"#),
        (
            json!({"enum": ["open", "closed"]}),
            json!(" Open"),
            r#"{"a":"open"}"#,
        ),
        (json!({"const": "ASC"}), json!("asc"), r#"{"a":"ASC"}"#),
        (
            json!({"anyOf": [{"enum": ["ASC", "DESC"]}, {"type": "null"}]}),
            json!("desc"),
            r#"{"a":"DESC"}"#,
        ),
        (
            list(&json!({"enum": ["bug", "idea"]})),
            json!(["BUG", "idea"]),
            r#"{"a":["bug","idea"]}"#,
        ),
        (
            json!({"anyOf": [integer, {"type": "null"}]}),
            json!("5"),
            r#"{"a":5}"#,
        ),
        (
            json!({"type": ["integer", "null"]}),
            json!("5"),
            r#"{"a":5}"#,
        ),
        (json!({"type": ["integer", "null"]}), json!(null), "ok"),
        (json!({"$ref": "#/properties/b"}), json!("5"), r#"{"a":5}"#),
    ];
    for (schema, value, expected) in cases {
        let mut whole = one(schema);
        whole["properties"]["b"] = json!({"type": "integer"});
        check(whole, json!({"a": value}), expected);
    }
}

#[test]
fn a_text_is_opened_and_what_is_inside_is_read_too() {
    let schema = of(json!({"opts": of(json!({"n": {"type": "integer"}}))}));
    check(
        schema,
        json!({"opts": "{\"n\":\"5\"}"}),
        r#"{"opts":{"n":5}}"#,
    );
}

#[test]
fn nothing_is_guessed() {
    let integer = json!({"type": "integer"});
    let texts = json!({"type": "array", "items": {"type": "string"}});
    let cases = [
        (
            integer.clone(),
            json!("abc"),
            r#"a: expected integer, got "abc""#,
        ),
        (
            integer.clone(),
            json!("1.5"),
            r#"a: expected integer, got "1.5""#,
        ),
        (integer.clone(), json!(1.5), "a: expected integer, got 1.5"),
        (integer, json!("007"), r#"a: expected integer, got "007""#),
        (
            json!({"type": "boolean"}),
            json!(1),
            "a: expected boolean, got 1",
        ),
        (
            json!({"enum": ["open", "OPEN"]}),
            json!("Open"),
            r#"a: expected one of "open", "OPEN", got "Open""#,
        ),
        (
            json!({"type": "boolean"}),
            json!("yes"),
            r#"a: expected boolean, got "yes""#,
        ),
        (
            json!({"type": "string"}),
            json!(1.1),
            "a: expected string, got 1.1",
        ),
        (
            texts.clone(),
            json!("a, b"),
            r#"a: expected string[], got "a, b""#,
        ),
        (
            texts.clone(),
            json!("[broken"),
            r#"a: expected string[], got "[broken""#,
        ),
        (texts, json!(""), r#"a: expected string[], got """#),
        (
            json!({"type": "object"}),
            json!("{"),
            r#"a: expected object, got "{""#,
        ),
    ];
    for (schema, value, expected) in cases {
        check(of(json!({"a": schema})), json!({"a": value}), expected);
    }
}

#[test]
fn the_arguments_themselves_stay_an_object() {
    let schema = json!({"type": "array", "items": {"type": "object"}});
    check(schema, json!({"a": 1}), r#"expected object[], got {"a":1}"#);
}

#[test]
fn a_null_that_is_required_stays_wrong() {
    let text = json!({"type": "string"});
    let schema = json!({"properties": {"a": text, "b~/": text}, "required": ["a"]});
    check(
        schema.clone(),
        json!({"a": null, "b~/": null}),
        "a: expected string, got null",
    );
    check(schema, json!({"a": "x", "b~/": null}), r#"{"a":"x"}"#);
    check(
        of(json!({"a": {"items": text}})),
        json!({"a": [null]}),
        "a[0]: expected string, got null",
    );
}

#[test]
fn a_null_that_the_schema_admits_as_openapi_writes_it_is_kept() {
    let nullable = |mut schema: Value| {
        schema["nullable"] = json!(true);
        json!({"properties": {"a": schema, "b": {"type": "integer"}}})
    };
    for schema in [
        json!({"type": "string"}),
        json!({"type": ["string", "integer"]}),
        json!({"type": "string", "enum": ["x"]}),
        json!({"const": "x"}),
        json!({"$ref": "#/properties/b"}),
        json!({"type": "object", "allOf": [{"type": "object"}]}),
        json!({"oneOf": [{"type": "string"}, {"type": "integer"}]}),
        json!({}),
    ] {
        check(nullable(schema), json!({"a": null}), "ok");
    }
    let integer = nullable(json!({"type": "integer"}));
    check(integer.clone(), json!({"a": "5"}), r#"{"a":5}"#);
    check(
        integer,
        json!({"a": "x"}),
        r#"a: expected integer|null, got "x""#,
    );
    let nested = nullable(
        json!({"type": "object", "properties": {"c": {"type": "string", "nullable": true}}}),
    );
    check(nested, json!({"a": {"c": null}}), "ok");
    let not = json!({"properties": {"a": {"type": "string", "nullable": false}}});
    check(not, json!({"a": null}), "{}");
    let named =
        json!({"properties": {"nullable": {"type": "boolean"}, "type": {"type": "string"}}});
    check(named, json!({"nullable": true, "type": "x"}), "ok");
    // A property may have the name of a keyword.
    let text = json!({"type": "string", "nullable": true});
    for name in ["default", "enum", "const", "example", "properties"] {
        for holder in ["properties", "patternProperties"] {
            check(json!({holder: {name: text}}), json!({name: null}), "ok");
        }
    }
    let named = json!({"properties": {"nullable": true, "type": {"type": "string"}}});
    check(named, json!({"type": null}), "{}");
}

#[test]
fn a_required_property_that_is_left_out_gets_its_default() {
    let limit = json!({"type": "integer", "default": 20});
    let schema = json!({"required": ["limit", "q"], "properties": {"q": {"type": "string"}, "limit": limit}});
    check(schema.clone(), json!({"q": "x"}), r#"{"q":"x","limit":20}"#);
    check(schema.clone(), json!({"q": "x", "limit": 3}), "ok");
    check(
        schema.clone(),
        json!({"q": "x", "limit": null}),
        r#"{"q":"x","limit":20}"#,
    );
    check(schema, json!({}), "q: missing; expected string");
    let nested = json!({"type": "array", "items": {"$ref": "#/$defs/page"}});
    let schema = json!({"properties": {"pages": nested}, "$defs": {
        "page": {"required": ["limit"], "properties": {"limit": {"$ref": "#/$defs/limit"}}}, "limit": limit}});
    check(
        schema,
        json!({"pages": [{}, {"limit": 1}]}),
        r#"{"pages":[{"limit":20},{"limit":1}]}"#,
    );
    let null = json!({"required": ["a"], "properties": {"a": {"type": ["string", "null"], "default": null}}});
    check(null, json!({}), r#"{"a":null}"#);
    // No default decides between alternatives.
    let kind = |name: &str| json!({"required": ["kind"], "properties": {"kind": {"const": name, "default": name}}});
    let schema = json!({"type": "object", "anyOf": [kind("a"), kind("b")]});
    let checker = Checker::new(&schema.to_string());
    assert!(checker.check(&Map::new()).is_err());
}

#[test]
fn every_violation_is_told_at_once() {
    let schema = json!({
        "type": "object",
        "properties": {
            "owner": {"type": "string"},
            "state": {"enum": ["open", "closed"], "type": "string"},
            "count": {"type": "integer", "minimum": 1},
            "labels": {"type": "array", "items": of(json!({"name": {"type": "string"}}))},
        },
        "required": ["owner"],
        "additionalProperties": false,
    });
    let arguments = json!({
        "onwer": "acme", "state": "opened", "count": 0, "labels": [{"name": []}], "zzz": 1,
    });
    let expected = [
        "labels[0].name: expected string, got []",
        "owner: missing; expected string; is `onwer` a misspelling of it?",
        "zzz: unknown key; unused known keys: `owner`",
        "count: expected at least 1, got 0",
        "onwer: unknown key; did you mean `owner`?",
        r#"state: expected one of "open", "closed", got "opened""#,
    ];
    let Err(violations) = Checker::new(&schema.to_string()).check(arguments.as_object().unwrap())
    else {
        panic!("expected violations");
    };
    let mut told: Vec<String> = violations.iter().map(Violation::to_string).collect();
    let mut expected: Vec<String> = expected.map(str::to_owned).to_vec();
    told.sort();
    expected.sort();
    assert_eq!(told, expected);
}

#[test]
fn unknown_keys_pass_where_the_schema_does_not_forbid_them() {
    check(of(json!({"a": {}})), json!({"b": 1}), "ok");
}

#[test]
fn alternatives_make_one_violation() {
    let cat = json!({"properties": {"kind": {"const": "cat"}, "lives": {"type": "integer"}},
        "required": ["kind", "lives"], "type": "object"});
    let dog =
        json!({"properties": {"kind": {"const": "dog"}}, "required": ["kind"], "type": "object"});
    let schema = |keyword: &str| {
        of(json!({"pet": {keyword: [cat, dog]}, "n": {
        "anyOf": [{"type": "integer"}, {"type": "null"}]}}))
    };
    for keyword in ["anyOf", "oneOf"] {
        check(
            schema(keyword),
            json!({"pet": {"kind": "cow"}}),
            r#"pet.kind: expected one of "cat", "dog", got "cow""#,
        );
        let cat_or_dog = json!({"pet": 1});
        let shape = r#"{kind: "cat", lives: integer}|{kind: "dog"}"#;
        check(
            schema(keyword),
            cat_or_dog,
            &format!("pet: expected {shape}, got 1"),
        );
    }
    check(
        schema("anyOf"),
        json!({"n": "x"}),
        r#"n: expected integer|null, got "x""#,
    );
}

#[test]
fn limits_are_told_in_words() {
    let cases = [
        (
            json!({"maximum": 3}),
            json!(4),
            "a: expected at most 3, got 4",
        ),
        (
            json!({"minLength": 1}),
            json!(""),
            r#"a: expected at least 1 character, got """#,
        ),
        (
            json!({"maxItems": 1}),
            json!([1, 2]),
            "a: expected at most 1 item, got [1,2]",
        ),
        (
            json!({"pattern": "^x$"}),
            json!("y"),
            r#"a: expected text matching ^x$, got "y""#,
        ),
        (
            json!({"uniqueItems": true}),
            json!([1, 1]),
            "a: expected unique items, got [1,1]",
        ),
        (
            json!({"const": "x"}),
            json!("y"),
            r#"a: expected "x", got "y""#,
        ),
        (json!(false), json!(1), "a: expected no value, got 1"),
        (json!({"not": {}}), json!(1), "a: {} is not allowed for 1"),
        (
            json!({"exclusiveMinimum": 0, "type": "number"}),
            json!("0"),
            "a: expected more than 0, got 0",
        ),
    ];
    for (schema, value, expected) in cases {
        check(of(json!({"a": schema})), json!({"a": value}), expected);
    }
}

#[test]
fn names_that_are_no_identifiers_are_quoted_in_paths() {
    let schema = of(json!({"a b/c~d": of(json!({"x.y": {"type": "integer"}}))}));
    let expected = r#""a b/c~d"."x.y": expected integer, got []"#;
    check(schema, json!({"a b/c~d": {"x.y": []}}), expected);
}

#[test]
fn drafts_are_told_by_their_name() {
    let draft_4 = "http://json-schema.org/draft-04/schema#";
    let draft_7 = "http://json-schema.org/draft-07/schema#";
    let tuple = json!([{"type": "integer"}]);
    let of_draft = |draft: &str, a: Value| json!({"$schema": draft, "properties": {"a": a}});
    let old = of_draft(draft_4, json!({"minimum": 0, "exclusiveMinimum": true}));
    check(old, json!({"a": 0}), "a: expected more than 0, got 0");
    let tuples = of_draft(draft_7, json!({"items": tuple, "type": "array"}));
    check(tuples, json!({"a": [[]]}), "a[0]: expected integer, got []");
}

#[test]
fn what_cannot_be_compiled_passes_everything() {
    let schemas = [
        "",
        "nonsense",
        "7",
        r#"{"properties":{"a":{"$ref":"https://example.com/a.json"}}}"#,
        r#"{"properties":{"a":{"$ref":"file:///etc/passwd"}}}"#,
        r##"{"properties":{"a":{"$ref":"#/$defs/nowhere"}}}"##,
        r#"{"properties":{"a":{"pattern":"("}}}"#,
        r#"{"$schema":"https://example.com/dialect"}"#,
        r#"{"properties":{"a":{"required":true}}}"#,
    ];
    for schema in schemas {
        let checker = Checker::new(schema);
        assert!(checker.is_blind(), "{schema}");
        assert_eq!(
            checker.check(&Map::from_iter([("a".to_owned(), json!(1))])),
            Ok(None)
        );
    }
}

#[test]
fn schemas_that_refer_to_themselves_are_checked() {
    let schema = json!({
        "properties": {"tree": {"$ref": "#/$defs/tree"}},
        "$defs": {"tree": {"type": "object", "properties": {
            "n": {"type": "integer"}, "next": {"$ref": "#/$defs/tree"}}}},
    });
    let arguments = json!({"tree": {"next": {"next": {"n": "x"}}}});
    check(
        schema.clone(),
        arguments,
        r#"tree.next.next.n: expected integer, got "x""#,
    );
    check(
        schema,
        json!({"tree": {"next": "{\"n\":\"1\"}"}}),
        r#"{"tree":{"next":{"n":1}}}"#,
    );
}

#[test]
fn thousands_of_values_are_read() {
    let items = of(json!({"n": {"type": "integer"}}));
    let list = json!({"type": "array", "items": items});
    let thousands = |item: Value| Value::Array(vec![item; 2_000]);
    let arguments = json!({"a": thousands(json!({"n": "1"})), "b": thousands(json!({"n": null}))});
    let expected = json!({"a": thousands(json!({"n": 1})), "b": thousands(json!({}))});
    check(
        of(json!({"a": list, "b": list})),
        arguments,
        &expected.to_string(),
    );
}

proptest! {
    #[test]
    fn what_was_read_passes_as_it_is_and_what_was_refused_says_why(
        schema in any_schema(),
        values in prop::collection::vec("[a-zA-Z_]{0,3}|[0-9]{1,2}|true|null|\\[1\\]|\\{\\}", 0..4),
    ) {
        let schema = schema.to_string();
        let checker = Checker::new(&schema);
        let names = crate::parameters(&schema).into_iter().map(|parameter| parameter.name);
        let arguments: Map<_, _> = names.zip(values.into_iter().map(Value::from)).collect();
        match checker.check(&arguments) {
            Ok(None) => {}
            Ok(Some(read)) => prop_assert_eq!(checker.check(&read), Ok(None)),
            Err(violations) => prop_assert!(!violations.is_empty()),
        }
    }
}

#[test]
fn messages_are_bounded() {
    let long = "x".repeat(1_000_000);
    let schema =
        of(json!({"a": {"type": "array", "items": {"type": "integer"}}, "b": {"enum": [long]}}));
    let arguments = json!({"a": vec![long.as_str(); 30], "b": "y".repeat(1_000_000), "c": long});
    let violations = Checker::new(&schema.to_string()).check(arguments.as_object().unwrap());
    let violations = violations.unwrap_err();
    assert_eq!(violations.len(), 21);
    assert_eq!(violations[20].message, "and 11 more");
    let longest = violations
        .iter()
        .map(|violation| violation.message.len())
        .max();
    assert!(longest < Some(320), "{longest:?}");
}
