//! Compares two texts of one definition, and sorts the differences: breaking, additive, wording.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value};

/// The effect of a difference on a client that uses the earlier definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// Every earlier use still works.
    Additive,
    /// Only texts for people and models differ.
    Wording,
    /// An earlier use may fail, or have another effect.
    Breaking,
}

impl ChangeKind {
    /// Returns the word for reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Additive => "additive",
            Self::Wording => "wording",
            Self::Breaking => "breaking",
        }
    }
}

/// One difference between two definitions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DefinitionChange {
    /// Its effect.
    pub kind: ChangeKind,
    /// The place and the difference, such as `inputSchema.owner: now required`.
    pub text: String,
}

/// Returns the differences between two texts of a tool, a prompt or a resource template: at least one
/// if their digests differ.
pub fn compare_definitions(before: &str, now: &str) -> Vec<DefinitionChange> {
    let mut found = Comparison::default();
    let parse = |text: &str| serde_json::from_str::<Map<String, Value>>(text).ok();
    match parse(before).zip(parse(now)) {
        Some((before, now)) => found.definitions(&before, &now),
        None => found.add(ChangeKind::Breaking, "cannot be compared"),
    }
    if found.changes.is_empty() {
        found.add(ChangeKind::Wording, "changed in a part without effect");
    }
    found.changes.sort_by_key(|it| std::cmp::Reverse(it.kind));
    found.changes
}

/// The side of a call that a schema describes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Direction {
    #[default]
    Input,
    Output,
}

#[derive(Default)]
struct Comparison {
    place: Vec<String>,
    direction: Direction,
    changes: Vec<DefinitionChange>,
}

/// Members that only people and models read.
const TEXTS: [&str; 9] = [
    "$comment",
    "$schema",
    "_meta",
    "deprecated",
    "description",
    "examples",
    "icons",
    "markdownDescription",
    "title",
];

/// Members whose values are schemas.
const SCHEMAS: [&str; 6] = [
    "additionalProperties",
    "contains",
    "items",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
];

impl Comparison {
    fn add(&mut self, kind: ChangeKind, what: &str) {
        let place = self.place.join(".");
        let text = if place.is_empty() {
            what.to_owned()
        } else {
            format!("{place}: {what}")
        };
        self.changes.push(DefinitionChange { kind, text });
    }

    fn within(&mut self, place: &str, compare: impl FnOnce(&mut Self)) {
        self.place.push(printable::one_line_of(place, 60));
        compare(self);
        self.place.pop();
    }

    fn definitions(&mut self, before: &Map<String, Value>, now: &Map<String, Value>) {
        for (key, old, new) in differences(before, now) {
            self.within(key, |it| match key {
                _ if TEXTS.contains(&key) => it.add(ChangeKind::Wording, told(old, new)),
                "inputSchema" => {
                    it.direction = Direction::Input;
                    it.schema(old.unwrap_or(ANY), new.unwrap_or(ANY));
                }
                "outputSchema" => match (old, new) {
                    (Some(old), Some(new)) => {
                        it.direction = Direction::Output;
                        it.schema(old, new);
                    }
                    (None, _) => it.add(ChangeKind::Additive, "added"),
                    _ => it.add(ChangeKind::Breaking, "removed"),
                },
                "annotations" => it.annotations(old, new),
                "arguments" => it.prompt_arguments(old, new),
                _ => it.add(ChangeKind::Breaking, told(old, new)),
            });
        }
    }

    fn annotations(&mut self, before: Option<&Value>, now: Option<&Value>) {
        for (key, old, new) in differences(&members_of(before), &members_of(now)) {
            let kind = if key == "title" {
                ChangeKind::Wording
            } else {
                ChangeKind::Breaking
            };
            self.within(key, |it| it.add(kind, told(old, new)));
        }
    }

    fn prompt_arguments(&mut self, before: Option<&Value>, now: Option<&Value>) {
        let read = |list: Option<&Value>| -> Map<String, Value> {
            let list = list.and_then(Value::as_array).into_iter().flatten();
            let named = list.filter_map(|it| Some((it.get("name")?.as_str()?, it)));
            named
                .map(|(name, it)| (name.to_owned(), it.clone()))
                .collect()
        };
        let is_required = |it: &Value| it.get("required") == Some(&Value::Bool(true));
        for (name, old, new) in differences(&read(before), &read(now)) {
            self.within(name, |it| match (old, new) {
                (Some(old), Some(new)) => {
                    match (is_required(old), is_required(new)) {
                        (false, true) => it.add(ChangeKind::Breaking, "now required"),
                        (true, false) => it.add(ChangeKind::Additive, "no longer required"),
                        _ => {}
                    }
                    let is_text = |key: &str| old.get(key) != new.get(key);
                    if ["title", "description"].into_iter().any(is_text) {
                        it.add(ChangeKind::Wording, "described in other words");
                    }
                }
                (None, Some(new)) if is_required(new) => {
                    it.add(ChangeKind::Breaking, "added and required");
                }
                (None, _) => it.add(ChangeKind::Additive, "added"),
                _ => it.add(ChangeKind::Breaking, "removed"),
            });
        }
    }

    /// A schema that accepts more: no caller notices it, but a reader of results does.
    fn wider(&mut self, what: &str) {
        let kind = match self.direction {
            Direction::Input => ChangeKind::Additive,
            Direction::Output => ChangeKind::Breaking,
        };
        self.add(kind, what);
    }

    fn narrower(&mut self, what: &str) {
        let kind = match self.direction {
            Direction::Input => ChangeKind::Breaking,
            Direction::Output => ChangeKind::Additive,
        };
        self.add(kind, what);
    }

    fn schema(&mut self, before: &Value, now: &Value) {
        match (before, now) {
            _ if before == now => {}
            (Value::Object(before), Value::Object(now)) => self.members(before, now),
            (Value::Bool(false), _) | (_, Value::Bool(true)) => self.wider("accepts more values"),
            (Value::Object(empty), _) if empty.is_empty() => self.narrower("accepts fewer values"),
            (_, Value::Object(empty)) if empty.is_empty() => self.wider("accepts more values"),
            (Value::Bool(true), _) | (_, Value::Bool(false)) => {
                self.narrower("accepts fewer values");
            }
            _ => self.add(ChangeKind::Breaking, "changed"),
        }
    }

    fn members(&mut self, before: &Map<String, Value>, now: &Map<String, Value>) {
        for (key, old, new) in differences(before, now) {
            match key {
                "properties" => self.properties(old, new, now.get("required")),
                "required" => self.required(old, new, before.get("properties")),
                "$defs" | "definitions" => self.named_schemas(old, new),
                _ => self.within(key, |it| match key {
                    _ if TEXTS.contains(&key) => it.add(ChangeKind::Wording, told(old, new)),
                    "type" => it.types(old, new),
                    "enum" => it.values(old, new),
                    "anyOf" | "oneOf" => it.branches(old, new),
                    "default" if old.is_none() => it.add(ChangeKind::Additive, "added"),
                    _ if SCHEMAS.contains(&key) => {
                        it.schema(old.unwrap_or(ANY), new.unwrap_or(ANY));
                    }
                    _ => it.limit(key, old, new),
                }),
            }
        }
    }

    fn properties(
        &mut self,
        before: Option<&Value>,
        now: Option<&Value>,
        required: Option<&Value>,
    ) {
        let is_checked = self.direction == Direction::Input;
        for (name, old, new) in differences(&members_of(before), &members_of(now)) {
            self.within(name, |it| match (old, new) {
                (Some(old), Some(new)) => it.schema(old, new),
                (None, _) if is_checked && texts_in(required).contains(name) => {
                    it.add(ChangeKind::Breaking, "added and required");
                }
                (None, _) => it.add(ChangeKind::Additive, "added"),
                _ => it.add(ChangeKind::Breaking, "removed"),
            });
        }
    }

    /// Members that were not declared before are the task of [`Self::properties`].
    fn required(&mut self, before: Option<&Value>, now: Option<&Value>, declared: Option<&Value>) {
        let declared = members_of(declared);
        let (before, now) = (texts_in(before), texts_in(now));
        for name in now.difference(&before) {
            if declared.contains_key(*name) || self.direction == Direction::Output {
                self.within(name, |it| it.narrower("now required"));
            }
        }
        for name in before.difference(&now) {
            self.within(name, |it| it.wider("no longer required"));
        }
    }

    /// A new or removed one has an effect only through a reference to it, which differs as well.
    fn named_schemas(&mut self, before: Option<&Value>, now: Option<&Value>) {
        let (before, now) = (members_of(before), members_of(now));
        for (name, old) in &before {
            if let Some(new) = now.get(name) {
                self.within(name, |it| it.schema(old, new));
            }
        }
    }

    fn types(&mut self, before: Option<&Value>, now: Option<&Value>) {
        let read = |value: Option<&Value>| -> Option<BTreeSet<String>> {
            let mut types: BTreeSet<String> = match value? {
                Value::String(one) => [one.clone()].into(),
                list => texts_in(Some(list))
                    .into_iter()
                    .map(str::to_owned)
                    .collect(),
            };
            // Every integer is a number.
            if types.contains("number") {
                types.insert("integer".to_owned());
            }
            Some(types)
        };
        match (read(before), read(now)) {
            (Some(old), Some(new)) if old.is_subset(&new) => self.wider("more types"),
            (Some(old), Some(new)) if new.is_subset(&old) => self.narrower("fewer types"),
            (None, Some(_)) => self.narrower("added"),
            (Some(_), None) => self.wider("removed"),
            _ => self.add(ChangeKind::Breaking, "changed"),
        }
    }

    fn values(&mut self, before: Option<&Value>, now: Option<&Value>) {
        let (Some(old), Some(new)) = (list_in(before), list_in(now)) else {
            return self.limit("enum", before, now);
        };
        let text = |what: &str, values: Vec<&Value>| {
            let values: Vec<String> = values.iter().map(ToString::to_string).collect();
            printable::one_line_of(&format!("{what} {}", values.join(", ")), 120)
        };
        let (more, fewer) = (only_in(new, old), only_in(old, new));
        if !more.is_empty() {
            self.wider(&text("added", more));
        }
        if !fewer.is_empty() {
            self.narrower(&text("removed", fewer));
        }
    }

    fn branches(&mut self, before: Option<&Value>, now: Option<&Value>) {
        let (Some(old), Some(new)) = (list_in(before), list_in(now)) else {
            return self.limit("anyOf", before, now);
        };
        let (more, fewer) = (only_in(new, old), only_in(old, new));
        if more.len() == fewer.len() {
            for (nth, (old, new)) in fewer.into_iter().zip(more).enumerate() {
                self.within(&nth.to_string(), |it| it.schema(old, new));
            }
            return;
        }
        if !more.is_empty() {
            self.wider("more alternatives");
        }
        if !fewer.is_empty() {
            self.narrower("fewer alternatives");
        }
    }

    /// A member that limits values; without it, nothing is limited.
    fn limit(&mut self, key: &str, before: Option<&Value>, now: Option<&Value>) {
        let numbers = before
            .and_then(Value::as_f64)
            .zip(now.and_then(Value::as_f64));
        let is_minimum = key.starts_with("min") || key == "exclusiveMinimum";
        let is_maximum = key.starts_with("max") || key == "exclusiveMaximum";
        match (before, now, numbers) {
            (Some(_), None, _) if key != "default" => self.wider("removed"),
            (None, Some(_), _) => self.narrower("added"),
            (_, _, Some((old, new))) if is_minimum && new < old || is_maximum && new > old => {
                self.wider("less strict");
            }
            (_, _, Some(_)) if is_minimum || is_maximum => self.narrower("stricter"),
            _ => self.add(ChangeKind::Breaking, told(before, now)),
        }
    }
}

/// The schema that is in place of an absent one.
const ANY: &Value = &Value::Bool(true);

fn told(before: Option<&Value>, now: Option<&Value>) -> &'static str {
    match (before, now) {
        (None, _) => "added",
        (_, None) => "removed",
        _ => "changed",
    }
}

/// A member that differs: its key, and its values before and now.
type Difference<'m> = (&'m str, Option<&'m Value>, Option<&'m Value>);

/// Returns the members that differ, sorted by key.
fn differences<'m>(
    before: &'m Map<String, Value>,
    now: &'m Map<String, Value>,
) -> impl Iterator<Item = Difference<'m>> {
    let keys = before.keys().chain(now.keys()).map(String::as_str);
    let keys: BTreeSet<&str> = keys.collect();
    let members = keys.into_iter();
    let members = members.map(|key| (key, before.get(key), now.get(key)));
    members.filter(|(_, old, new)| old != new)
}

/// Returns the values that the other list lacks.
fn only_in<'v>(list: &'v [Value], other: &[Value]) -> Vec<&'v Value> {
    let other: BTreeSet<String> = other.iter().map(ToString::to_string).collect();
    let only = list.iter().filter(|it| !other.contains(&it.to_string()));
    only.collect()
}

fn members_of(value: Option<&Value>) -> Map<String, Value> {
    value
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default()
}

fn list_in(value: Option<&Value>) -> Option<&[Value]> {
    value.and_then(Value::as_array).map(Vec::as_slice)
}

fn texts_in(value: Option<&Value>) -> BTreeSet<&str> {
    let list = list_in(value).unwrap_or_default();
    list.iter().filter_map(Value::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(before: &str, now: &str, expected: &[&str]) {
        let found = compare_definitions(before, now);
        let found = found
            .iter()
            .map(|it| format!("{} {}", it.kind.as_str(), it.text));
        let found: Vec<String> = found.collect();
        assert_eq!(found, expected, "{before}\n{now}");
    }

    /// Compares two input schemas, and the same as output schemas.
    fn check_schema(before: &str, now: &str, input: &[&str], output: &[&str]) {
        for (side, expected) in [("inputSchema", input), ("outputSchema", output)] {
            let definition = |schema: &str| format!(r#"{{"name":"a","{side}":{schema}}}"#);
            let expected: Vec<String> = expected
                .iter()
                .map(|it| it.replacen(' ', &format!(" {side}"), 1))
                .collect();
            let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
            check(&definition(before), &definition(now), &expected);
        }
    }

    #[test]
    fn differences_of_a_definition_are_sorted_by_their_effect() {
        check(
            r#"{"name":"a","description":"x"}"#,
            r#"{"name":"a","description":"y"}"#,
            &["wording description: changed"],
        );
        check(
            r#"{"name":"a","annotations":{"title":"A","readOnlyHint":true}}"#,
            r#"{"name":"a","annotations":{"title":"B"},"execution":{"taskSupport":"required"}}"#,
            &[
                "breaking annotations.readOnlyHint: removed",
                "breaking execution: added",
                "wording annotations.title: changed",
            ],
        );
        check(
            r#"{"name":"p","arguments":[{"name":"x"},{"name":"y","required":true}]}"#,
            r#"{"name":"p","arguments":[{"name":"x","required":true,"description":"d"},{"name":"z"},{"name":"w","required":true}]}"#,
            &[
                "breaking arguments.w: added and required",
                "breaking arguments.x: now required",
                "breaking arguments.y: removed",
                "wording arguments.x: described in other words",
                "additive arguments.z: added",
            ],
        );
        check(
            r#"{"name":"a"}"#,
            r#"{"name":"a","outputSchema":{"type":"object"}}"#,
            &["additive outputSchema: added"],
        );
        check("{", r#"{"name":"a"}"#, &["breaking cannot be compared"]);
        check(
            r#"{"name":"a","n":1}"#,
            r#"{"name":"a","n":1}"#,
            &["wording changed in a part without effect"],
        );
    }

    #[test]
    fn a_schema_may_grow_as_input_and_shrink_as_output() {
        check_schema(
            r#"{"properties":{"x":{"type":"string"}}}"#,
            r#"{"properties":{"x":{"type":"string"},"y":{"type":"string"}}}"#,
            &["additive .y: added"],
            &["additive .y: added"],
        );
        check_schema(
            r#"{"properties":{"x":{}}}"#,
            r#"{"properties":{"x":{},"y":{}},"required":["x","y"]}"#,
            &[
                "breaking .y: added and required",
                "breaking .x: now required",
            ],
            &[
                "additive .y: added",
                "additive .x: now required",
                "additive .y: now required",
            ],
        );
        check_schema(
            r#"{"properties":{"x":{"type":"integer","enum":[1,2],"maximum":5}}}"#,
            r#"{"properties":{"x":{"type":["number","null"],"enum":[1,2,3],"maximum":9}}}"#,
            &[
                "additive .x.enum: added 3",
                "additive .x.maximum: less strict",
                "additive .x.type: more types",
            ],
            &[
                "breaking .x.enum: added 3",
                "breaking .x.maximum: less strict",
                "breaking .x.type: more types",
            ],
        );
    }

    #[test]
    fn limits_and_references_of_a_schema_are_compared() {
        check_schema(
            r#"{"properties":{"x":{"pattern":"a"}},"additionalProperties":false}"#,
            r#"{"properties":{"x":{"pattern":"b"}}}"#,
            &[
                "breaking .x.pattern: changed",
                "additive .additionalProperties: accepts more values",
            ],
            &[
                "breaking .additionalProperties: accepts more values",
                "breaking .x.pattern: changed",
            ],
        );
        check_schema(
            r##"{"$defs":{"d":{"anyOf":[{"const":1},{"const":2}]}},"properties":{"x":{"$ref":"#/$defs/d"}}}"##,
            r##"{"$defs":{"d":{"anyOf":[{"const":1}]}},"properties":{"x":{"$ref":"#/$defs/d","default":1}}}"##,
            &[
                "breaking .d.anyOf: fewer alternatives",
                "additive .x.default: added",
            ],
            &[
                "additive .d.anyOf: fewer alternatives",
                "additive .x.default: added",
            ],
        );
        check_schema(
            r#"{"properties":{"x":{"default":1,"minLength":1}}}"#,
            r#"{"properties":{"x":{"minLength":2,"description":"d"}}}"#,
            &[
                "breaking .x.default: removed",
                "breaking .x.minLength: stricter",
                "wording .x.description: added",
            ],
            &[
                "breaking .x.default: removed",
                "wording .x.description: added",
                "additive .x.minLength: stricter",
            ],
        );
    }

    #[test]
    fn a_deep_definition_is_not_compared() {
        let deep = |inside: &str| {
            let (open, close) = (r#"{"items":"#.repeat(10_000), "}".repeat(10_000));
            format!(r#"{{"name":"a","inputSchema":{open}{inside}{close}}}"#)
        };
        check(&deep("1"), &deep("2"), &["breaking cannot be compared"]);
    }
}
