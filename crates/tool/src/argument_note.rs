//! A note about one argument: the part of its schema that the signature leaves out.

use std::collections::BTreeSet;

use printable::one_line_of;
use serde_json::Value;

use crate::{
    Violation, near, parameters,
    schema::{Detail, SchemaNode, SchemaReader, name_text, plain_text},
};

/// The level of detail of a note: a signature shows fewer values and members.
const WIDE: Detail = Detail {
    literals_max: 30,
    literals_shown: 20,
    literals_chars_max: 200,
    alternatives_max: 6,
    fields_max: 10,
};

/// The keywords that limit a value, each with the words around its value.
const LIMITS: [(&str, &str, &str); 8] = [
    ("format", "", ""),
    ("pattern", "matching ", ""),
    ("minimum", "at least ", ""),
    ("maximum", "at most ", ""),
    ("minLength", "at least ", " characters"),
    ("maxLength", "at most ", " characters"),
    ("minItems", "at least ", " items"),
    ("maxItems", "at most ", " items"),
];

/// The longest value of a limit, in characters: patterns are long.
const LIMIT_CHARS_MAX: usize = 60;

/// Returns the arguments that the violations concern. All names are those of the schema: an unknown key
/// concerns the argument that it may be a misspelling of.
pub fn wrong_arguments(schema: &str, violations: &[Violation]) -> Vec<String> {
    let parameters = parameters(schema);
    let names: Vec<String> = parameters.iter().map(|it| name_text(&it.name)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut wrong = BTreeSet::new();
    for Violation { path, .. } in violations {
        let is_in = |name: &&&str| {
            let rest = path.strip_prefix(**name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        match names.iter().find(is_in) {
            Some(name) => wrong.extend([*name]),
            None => wrong.extend(near(path, names.iter().copied(), 1)),
        }
    }
    wrong.into_iter().map(str::to_owned).collect()
}

/// Returns a note about an argument, `start: date-time, "Start of the event, with offset"`: its type
/// unless the signature shows it, its limits, and as much of its description as `chars_max`. None if that
/// says no more than the signature.
pub fn argument_note(
    schema: &str,
    name: &str,
    signature: &str,
    chars_max: usize,
) -> Option<String> {
    let root: Value = serde_json::from_str(schema).ok()?;
    let reader = SchemaReader::new(&root);
    let mut fields = reader.root().fields().into_iter();
    let field = fields.find(|field| name_text(field.name) == name)?;
    let mut parts = Vec::new();
    if !signature.contains(&field.text(WIDE)) {
        parts.push(field.type_text(WIDE));
    }
    parts.extend(limits(field.node));
    let description = field.node.description().unwrap_or_default();
    if chars_max > 0 && !description.trim().is_empty() {
        parts.push(format!("\"{}\"", one_line_of(description, chars_max)));
    }
    (!parts.is_empty()).then(|| format!("{name}: {}", parts.join(", ")))
}

/// The limits of a value, its alternatives and, for a list, its items.
fn limits(node: SchemaNode<'_>) -> Vec<String> {
    let mut limits = Vec::new();
    let node = node.resolve();
    let inner = node.alternatives().into_iter().map(SchemaNode::resolve);
    for node in [node].into_iter().chain(inner).chain(node.items()) {
        for (keyword, before, after) in LIMITS {
            if let Some(value) = node.get(keyword) {
                let value = one_line_of(&plain_text(value), LIMIT_CHARS_MAX);
                limits.push(format!("{before}{value}{after}"));
            }
        }
    }
    limits.dedup();
    limits
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Checker, signature};

    fn schema() -> String {
        let formats: Vec<String> = (0..12).map(|at| format!("f{at}")).collect();
        json!({"type": "object", "additionalProperties": false, "required": ["start"],
            "properties": {
                "start": {"type": "string", "pattern": "^\\d{4}-\\d\\d-\\d\\d$",
                    "description": "First day,\nin UTC"},
                "limit": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 50}, {"type": "null"}]},
                "format": {"enum": formats},
                "plain": {"type": "string"},
                "filters": {"type": "array", "items": {"$ref": "#/$defs/filter"}}},
            "$defs": {"filter": {"type": "object", "required": ["op"], "properties": {
                "op": {"enum": ["eq", "ne"]}, "tags": {"type": "array", "items": {"type": "string", "format": "uuid"}}}}}
        })
        .to_string()
    }

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "cases read better")]
    fn check(arguments: Value, paths: &[&str], notes: &[&str]) {
        let schema = schema();
        let wrong = Checker::new(&schema).check(arguments.as_object().unwrap());
        let wrong = wrong_arguments(&schema, &wrong.unwrap_err());
        assert_eq!(wrong, paths);
        let signature = signature(&schema, "");
        let shown = wrong.iter();
        let shown = shown.filter_map(|path| argument_note(&schema, path, &signature, 40));
        assert_eq!(shown.collect::<Vec<_>>(), notes);
    }

    #[test]
    fn a_note_says_what_the_signature_leaves_out() {
        check(
            json!({"start": "tomorrow", "limit": 500}),
            &["limit", "start"],
            &[
                "limit: at least 1, at most 50",
                "start: matching ^\\d{4}-\\d\\d-\\d\\d$, \"First day, in UTC\"",
            ],
        );
        let all: Vec<String> = (0..12).map(|at| format!("\"f{at}\"")).collect();
        let formats = format!("format: {}", all.join("|"));
        check(
            json!({"start": "2026-01-01", "format": "pdf"}),
            &["format"],
            &[&formats],
        );
        check(
            json!({"start": "2026-01-01", "filters": [{"op": "eq"}, {"op": "like", "tags": [{}]}]}),
            &["filters"],
            &["filters: {op: \"eq\"|\"ne\", tags?: string[]}[]"],
        );
    }

    #[test]
    fn only_names_of_the_schema_are_told() {
        check(
            json!({"start": "2026-01-01", "plan": "x", "secret": "hunter2"}),
            &["plain"],
            &[],
        );
    }
}
