//! The signature of a tool: its parameters, in one line.

use serde_json::Value;

use crate::schema::{Detail, Field, SchemaReader, name_text};

/// Room for the required parameters of a signature, in columns. Beyond it, types are shortened, then
/// omitted, and at last names are omitted.
const REQUIRED_COLUMNS_MAX: usize = 130;
/// Room for the whole signature with optional parameters.
const OPTIONAL_COLUMNS_MAX: usize = 99;
/// Room for the members of a structured result.
const OUTPUT_COLUMNS_MAX: usize = 24;
/// The member in which the Python SDK wraps every value that is not an object. Showing it would
/// cost five tokens per hit without adding information; a script that reads another member gets an
/// error with this name.
const WRAPPER: &str = "result";

/// Renders a tool's parameters as `(owner: string, page?: integer=1)`, required ones first.
///
/// `…` marks omitted parts. `()` is a tool without parameters, `(…)` one without named parameters that
/// accepts any object, or whose schema cannot be parsed. Optional parameters leave room for `output`,
/// which a hit shows after the parameters.
pub fn signature(schema: &str, output: &str) -> String {
    let Ok(root) = serde_json::from_str::<Value>(schema) else {
        return "(…)".to_owned();
    };
    let reader = SchemaReader::new(&root);
    let fields = reader.root().fields();
    if fields.is_empty() && reader.root().is_open() {
        return "(…)".to_owned();
    }
    let (required, optional): (Vec<_>, Vec<_>) = fields.iter().partition(|field| field.required);
    let mut line = SignatureParts::default();
    line.add_required(&required);
    line.add_optional(
        &optional,
        OPTIONAL_COLUMNS_MAX.saturating_sub(columns(output)),
    );
    format!("({})", line.finish())
}

/// Renders the members of an output schema as ` -> {path, size}`.
///
/// The text is empty if the schema names no member, or only `WRAPPER`.
pub fn output_signature(schema: &str) -> String {
    let Ok(root) = serde_json::from_str::<Value>(schema) else {
        return String::new();
    };
    let reader = SchemaReader::new(&root);
    let fields = reader.root().fields();
    if fields.iter().all(|field| field.name == WRAPPER) {
        return String::new();
    }
    let mut line = SignatureParts::default();
    for field in &fields {
        line.add(name_text(field.name), OUTPUT_COLUMNS_MAX);
    }
    format!(" -> {{{}}}", line.finish())
}

/// The parts of a signature that fit.
#[derive(Default)]
struct SignatureParts {
    parts: Vec<String>,
    columns: usize,
    is_cut: bool,
}

impl SignatureParts {
    fn add_required(&mut self, fields: &[&Field<'_>]) {
        let texts = [Detail::FULL, Detail::BRIEF]
            .iter()
            .map(|detail| fields.iter().map(|field| field.text(*detail)).collect())
            .find(|texts: &Vec<String>| total(texts) <= REQUIRED_COLUMNS_MAX);
        let bare = || fields.iter().map(|field| name_text(field.name)).collect();
        self.is_cut |= texts.is_none();
        for text in texts.unwrap_or_else(bare) {
            self.add(text, REQUIRED_COLUMNS_MAX);
        }
    }

    fn add_optional(&mut self, fields: &[&Field<'_>], columns_max: usize) {
        let full: Vec<String> = fields
            .iter()
            .map(|field| field.text(Detail::FULL))
            .collect();
        let all_fit = self.columns + total(&full) <= columns_max;
        for (field, full) in fields.iter().zip(full) {
            let text = if all_fit {
                full
            } else {
                field.text(Detail::BRIEF)
            };
            self.add(text, columns_max);
        }
    }

    fn add(&mut self, text: String, columns_max: usize) {
        let columns = self.columns + part_columns(&text);
        if columns > columns_max {
            self.is_cut = true;
            return;
        }
        self.columns = columns;
        self.parts.push(text);
    }

    fn finish(mut self) -> String {
        if self.is_cut {
            self.parts.push("…".to_owned());
        }
        self.parts.join(", ")
    }
}

fn total(parts: &[String]) -> usize {
    parts.iter().map(|part| part_columns(part)).sum()
}

fn part_columns(part: &str) -> usize {
    columns(part) + ", ".len()
}

/// Returns the width of a text: a non-ASCII character counts as two, since it costs about twice the
/// tokens.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(char_columns).sum()
}

pub(crate) fn char_columns(c: char) -> usize {
    if c.is_ascii() { 1 } else { 2 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::schema::tests::any_schema;

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "cases read better")]
    fn check(schema: Value, expected: &str) {
        assert_eq!(signature(&schema.to_string(), ""), expected);
    }

    #[expect(clippy::needless_pass_by_value, reason = "cases read better")]
    fn of(properties: Value) -> Value {
        json!({"type": "object", "properties": properties})
    }

    #[test]
    fn required_come_first_with_types_and_defaults() {
        let schema = json!({"properties": {
            "page": {"type": "integer", "default": 1},
            "repo": {"type": "string"},
            "labels": {"type": "array", "items": {"type": "string"}},
            "owner": {"type": "string"},
        }, "required": ["owner", "repo"]});
        check(
            schema,
            "(repo: string, owner: string, page?: integer=1, labels?: string[])",
        );
    }

    #[test]
    fn the_members_of_a_result_are_told_where_they_are_declared() {
        let check = |schema: Value, expected: &str| {
            assert_eq!(output_signature(&schema.to_string()), expected);
        };
        check(of(json!({"content": {"type": "string"}})), " -> {content}");
        check(
            of(json!({"a b": {}, "n": {"type": "integer"}})),
            " -> {\"a b\", n}",
        );
        check(json!({"type": "object"}), "");
        check(json!({"type": "array"}), "");
        check(of(json!({"result": {"type": "string"}})), "");
        check(
            of(json!({"result": {"type": "string"}, "n": {}})),
            " -> {result, n}",
        );
        let many = (0..40).map(|at| (format!("member{at}"), json!({})));
        let text = output_signature(&of(Value::Object(many.collect())).to_string());
        assert!(text.len() < 70 && text.ends_with(", …}"), "{text}");
    }

    #[test]
    fn optional_parameters_leave_room_for_the_result() {
        let optional = (0..9).map(|at| (format!("parameter{at}"), json!({"type": "string"})));
        let schema = of(Value::Object(optional.collect())).to_string();
        let output = " -> {id, name, …}";
        let beside = signature(&schema, output);
        assert!(beside.len() < signature(&schema, "").len(), "{beside}");
        assert!(columns(&beside) + columns(output) <= OPTIONAL_COLUMNS_MAX + "(…, )".len());
    }

    #[test]
    fn types_are_told_in_few_words() {
        let cases = [
            (
                json!({"enum": ["create", "update"]}),
                r#""create"|"update""#,
            ),
            (json!({"enum": [1, 2, 3, 4, 5, 6, 7, 8]}), "1|2|3|4|5|6|7|8"),
            (json!({"enum": [1, 2, 3, 4, 5, 6, 7, 8, 9]}), "1|2|3|…"),
            (json!({"const": "a\nb"}), r#""a\nb""#),
            (json!({"type": ["string", "null"]}), "string"),
            (
                json!({"anyOf": [{"type": "null"}, {"type": "integer"}]}),
                "integer",
            ),
            (
                json!({"anyOf": [{"const": "a"}, {"const": "b"}]}),
                r#""a"|"b""#,
            ),
            (
                json!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
                "string|string[]",
            ),
            (
                json!({"type": "array", "items": {"enum": ["a", "b"]}}),
                r#"("a"|"b")[]"#,
            ),
            (json!({"type": "array"}), "array"),
            (json!({"type": "object"}), "object"),
            (json!({}), "any"),
            (
                json!({"type": "string", "default": "main"}),
                r#"string="main""#,
            ),
            (json!({"type": "string", "default": ""}), "string"),
            (
                json!({"type": "boolean", "default": false}),
                "boolean=false",
            ),
            (json!({"type": "integer", "default": null}), "integer"),
            (
                json!({"type": "string", "default": "longer than anybody reads"}),
                "string",
            ),
            (
                json!({"allOf": [{"$ref": "#/$defs/colour"}], "default": "red"}),
                r#""red"|"blue"="red""#,
            ),
            (
                json!({"properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a"]}),
                "{a: string, b?: integer}",
            ),
            (
                json!({"properties": {"a": {"properties": {"b": {}}}}}),
                "{a?: {…}}",
            ),
            (json!({"$ref": "#/$defs/tree"}), "{next?: {…}}"),
        ];
        for (schema, expected) in cases {
            let mut whole = of(json!({"x": schema}));
            whole["$defs"] = json!({"colour": {"enum": ["red", "blue"]},
                "tree": {"properties": {"next": {"$ref": "#/$defs/tree"}}}});
            check(whole, &format!("(x?: {expected})"));
        }
    }

    #[test]
    fn no_parameters_and_any_parameters_differ() {
        check(json!({"type": "object"}), "()");
        check(json!({}), "()");
        check(
            json!({"type": "object", "additionalProperties": false}),
            "()",
        );
        check(
            json!({"type": "object", "additionalProperties": true}),
            "(…)",
        );
        check(
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            "(…)",
        );
        assert_eq!(signature("no json", ""), "(…)");
    }

    #[test]
    fn names_that_are_no_identifiers_are_quoted() {
        check(
            of(json!({"If-Match": {}, "名": {}, "a b": {}, "": {}, "$top": {}})),
            r#"("If-Match"?: any, 名?: any, "a b"?: any, ""?: any, $top?: any)"#,
        );
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        let optional: serde_json::Map<_, _> = (0..200)
            .map(|nth| (format!("parameter_{nth}"), json!({"type": "string"})))
            .collect();
        let names: Vec<_> = optional.keys().cloned().collect();
        check(
            of(Value::Object(optional.clone())),
            "(parameter_0?: string, parameter_1?: string, parameter_2?: string, parameter_3?: string, …)",
        );
        let mut schema = of(Value::Object(optional));
        schema["required"] = json!(names);
        let bare: Vec<_> = (0..10).map(|nth| format!("parameter_{nth}")).collect();
        check(schema, &format!("({}, …)", bare.join(", ")));
    }

    proptest! {
        #[test]
        fn a_signature_is_one_bounded_line(schema in any_schema()) {
            let signature = signature(&schema.to_string(), "");
            prop_assert!(columns(&signature) <= REQUIRED_COLUMNS_MAX + "(…, …)".len(), "{}", signature);
            prop_assert_eq!(signature.lines().count(), 1);
        }
    }
}
