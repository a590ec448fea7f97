use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::Tool;

/// Checks the parameters: `name!` if required, then `=` and the literal values.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "cases read better")]
fn check(schema: Value, expected: &str) {
    let told = parameters(&schema.to_string())
        .into_iter()
        .map(|parameter| {
            let required = if parameter.required { "!" } else { "" };
            let values = parameter.enum_values.join("|");
            format!("{}{required}={values}", parameter.name)
        });
    assert_eq!(told.collect::<Vec<_>>().join(" "), expected);
}

#[test]
fn parameters_are_found_wherever_the_schema_hides_them() {
    let a_and_b =
        json!({"a": {"enum": ["x", 1, null]}, "b": {"type": "array", "items": {"const": "y"}}});
    check(
        json!({"properties": a_and_b, "required": ["b"]}),
        "b!=y a=x|1|null",
    );
    check(
        json!({"$ref": "#/$defs/it", "$defs": {"it": {"properties": a_and_b}}}),
        "a=x|1|null b=y",
    );
    check(
        json!({"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}, "required": ["b"]}]}),
        "b!= a=",
    );
    let of = |name: &str| json!({"properties": {"both": {}, name: {}}, "required": ["both", name]});
    check(json!({"anyOf": [of("a"), of("b")]}), "both!= a= b=");
    check(
        json!({"oneOf": [of("a"), of("b")], "properties": {"c": {}}}),
        "both!= c= a= b=",
    );
    check(json!({"required": ["a"]}), "a!=");
    check(
        json!({"required": ["a"], "allOf": [{"properties": {"a": {"const": 1}}}]}),
        "a!=1",
    );
    check(
        json!({"properties": {"a": {"$ref": "#/$defs/a%20b/x~1y"}}, "$defs": {"a b": {"x/y": {"enum": [2]}}}}),
        "a=2",
    );
    check(
        json!({"properties": {"a": {"$ref": "https://example.com/x.json"}}}),
        "a=",
    );
    check(json!({"$ref": "#"}), "");
    check(
        json!({"$ref": "#/$defs/it", "properties": {"c": {}}, "required": ["a"],
            "$defs": {"it": {"properties": {"a": {"const": 1}}}}}),
        "a!=1 c=",
    );
    check(json!(true), "");
    check(json!({"properties": [], "required": "a"}), "");
}

#[test]
fn a_description_beside_a_reference_wins() {
    let schema = json!({"properties": {"a": {"$ref": "#/$defs/d", "description": "here"}, "b": {"$ref": "#/$defs/d"}},
        "$defs": {"d": {"description": "there"}}});
    let descriptions = parameters(&schema.to_string())
        .into_iter()
        .map(|parameter| parameter.description);
    assert_eq!(descriptions.collect::<Vec<_>>(), ["here", "there"]);
}

#[test]
fn a_schema_that_branches_without_end_is_read_in_bounded_steps() {
    let branches: Vec<Value> = (0..30).map(|_| json!({"$ref": "#"})).collect();
    let schema =
        json!({"anyOf": branches, "allOf": branches, "properties": {"a": {"anyOf": branches}}});
    check(schema, "a=");
}

#[test]
fn minified_changes_nothing_but_white_space() {
    let cases = [
        (
            "{ \"a b\" :\t1.50e+1 ,\r\n \"a b\":\"\\u00e9 \\\" \\\\\" }",
            "{\"a b\":1.50e+1,\"a b\":\"\\u00e9 \\\" \\\\\"}",
        ),
        ("[ ]", "[]"),
        ("{ no json ", "{ no json "),
        ("", ""),
    ];
    for (schema, expected) in cases {
        assert_eq!(minified(schema), expected);
    }
}

#[test]
fn ten_thousand_levels_do_not_harm() {
    let schema = format!("{} 1 {}", r#"{"items":"#.repeat(10_000), "}".repeat(10_000));
    let json = format!(r#"{{"name":"deep","inputSchema":{schema}}}"#);
    let tool = Tool::parse(&json).unwrap();
    assert_eq!(minified(&tool.input_schema()).len(), schema.len() - 2);
    assert_eq!(parameters(&tool.input_schema()), []);
    assert_eq!(crate::signature(&tool.input_schema(), ""), "(…)");
    assert_eq!(crate::example(&tool.input_schema()), None);
    assert!(crate::Checker::new(&tool.input_schema()).is_blind());
    assert_eq!(crate::purpose(&tool, None, None, &[]), "Deep");
    assert_eq!(tool.digest(), Tool::parse(&json).unwrap().digest());
}

/// Generates schemas like those of servers: mostly sensible, sometimes not.
pub(crate) fn any_schema() -> impl Strategy<Value = Value> {
    any_part().prop_map(|part| {
        let defs = json!({"a": {"type": "integer", "minimum": 2}, "b": {"$ref": "#"}});
        match part {
            Value::Object(mut schema) => {
                schema.insert("$defs".to_owned(), defs);
                Value::Object(schema)
            }
            other => other,
        }
    })
}

fn any_part() -> impl Strategy<Value = Value> {
    let types = [
        "string", "integer", "number", "boolean", "null", "array", "object", "odd",
    ];
    let leaf = prop_oneof![
        prop::sample::select(types.to_vec()).prop_map(|name| json!({"type": name})),
        prop::collection::vec(prop::sample::select(types.to_vec()), 0..3)
            .prop_map(|names| json!({"type": names})),
        prop::collection::vec("\\PC{0,12}", 0..12).prop_map(|values| json!({"enum": values})),
        (any::<i8>(), any::<i8>())
            .prop_map(|(a, b)| json!({"type": "integer", "minimum": a, "maximum": b})),
        (0u8..9, 0u8..9).prop_map(
            |(a, b)| json!({"type": "string", "minLength": a, "maxLength": b, "default": "x"})
        ),
        prop::sample::select(vec![
            "#",
            "#/$defs/a",
            "#/$defs/b",
            "#/$defs/c",
            "https://example.com/"
        ])
        .prop_map(|target| json!({"$ref": target})),
        any::<bool>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 6, |inner| {
        let name = "[a-zA-Z_.é字 -]{0,20}";
        let many = prop::collection::vec(inner.clone(), 0..4);
        let keyword = prop::sample::select(vec!["anyOf", "oneOf", "allOf"]);
        prop_oneof![
            (
                prop::collection::vec((name, inner.clone(), any::<bool>()), 0..12),
                any::<bool>()
            )
                .prop_map(object),
            (keyword, many).prop_map(|(keyword, parts)| json!({keyword: parts})),
            inner.prop_map(|items| json!({"type": "array", "items": items})),
        ]
    })
}

fn object((fields, closed): (Vec<(String, Value, bool)>, bool)) -> Value {
    let required: Vec<&String> = fields
        .iter()
        .filter(|field| field.2)
        .map(|field| &field.0)
        .collect();
    let properties: serde_json::Map<String, Value> = fields
        .iter()
        .map(|(name, schema, _)| (name.clone(), schema.clone()))
        .collect();
    json!({"type": "object", "required": required, "properties": properties, "additionalProperties": !closed})
}

proptest! {
    #[test]
    fn minified_means_the_same(schema in any_schema()) {
        let pretty = serde_json::to_string_pretty(&schema).unwrap();
        prop_assert_eq!(minified(&pretty), schema.to_string());
    }

    #[test]
    fn minified_survives_any_text(text in "\\PC*") {
        prop_assert!(minified(&text).len() <= text.len());
    }

    #[test]
    fn required_parameters_come_first(schema in any_schema()) {
        let required = parameters(&schema.to_string()).into_iter().map(|parameter| parameter.required);
        prop_assert!(required.is_sorted_by(|before, after| before >= after));
    }
}
