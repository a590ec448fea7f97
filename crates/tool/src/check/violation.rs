//! Describes violations in a call's arguments, so that the next call can be correct.

use std::fmt;

use jsonschema::{ValidationError, error::ValidationErrorKind as Kind};
use serde_json::Value;

use super::finding::{Finding, findings};
use crate::{
    near,
    schema::{Detail, Field, SchemaNode, SchemaReader, Shape, literals_text, name_text},
};

/// One violation of the schema in a call's arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The path to the value: `labels[0].name`; empty for the arguments as a whole.
    pub path: String,
    /// The expected and the received value, in bounded length.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.message);
        }
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// The most violations in one error, since a list may have a thousand invalid items.
const VIOLATIONS_MAX: usize = 20;
/// The longest received value in an error, in characters.
const GOT_CHARS_MAX: usize = 60;
/// The longest description of the expected value, in characters.
const EXPECTED_CHARS_MAX: usize = 200;
/// The longest name of a property in a path, in characters.
pub(crate) const NAME_CHARS_MAX: usize = 80;
/// The most keys compared with a possibly misspelt key: a comparison takes microseconds, and a
/// tenth of a millisecond for long keys.
const COMPARED_MAX: usize = 200;
/// The most keys listed when none is similar.
const KEYS_MAX: usize = 8;

/// Returns one violation for each path, in the order of the errors.
pub(super) fn of_errors(
    errors: &[ValidationError<'_>],
    reader: &SchemaReader<'_>,
) -> Vec<Violation> {
    let mut shown: Vec<(u8, Violation)> = Vec::new();
    let mut omitted = 0;
    for finding in errors.iter().flat_map(findings) {
        omitted += count(&finding);
        if shown.len() == VIOLATIONS_MAX {
            continue;
        }
        for (rank, violation) in of_finding(&finding, reader) {
            match shown
                .iter()
                .position(|(_, known)| known.path == violation.path)
            {
                Some(known) if shown[known].0 > rank => shown[known] = (rank, violation),
                Some(_) => {}
                None if shown.len() == VIOLATIONS_MAX => continue,
                None => shown.push((rank, violation)),
            }
            omitted -= 1;
        }
    }
    let mut violations: Vec<Violation> =
        shown.into_iter().map(|(_, violation)| violation).collect();
    if omitted > 0 {
        violations.push(Violation {
            path: String::new(),
            message: format!("and {omitted} more"),
        });
    }
    violations
}

fn count(finding: &Finding<'_>) -> usize {
    match finding {
        Finding::Error(error) => match error.kind() {
            Kind::AdditionalProperties { unexpected }
            | Kind::UnevaluatedProperties { unexpected } => unexpected.len(),
            _ => 1,
        },
        Finding::Choice { .. } => 1,
    }
}

/// Returns the violations of a finding, [`VIOLATIONS_MAX`] at most, each with a rank: of two violations
/// at one path, the one with the lower rank is more specific.
fn of_finding(finding: &Finding<'_>, reader: &SchemaReader<'_>) -> Vec<(u8, Violation)> {
    let error = match finding {
        Finding::Error(error) => *error,
        Finding::Choice {
            pointer,
            got,
            options,
        } => return vec![(0, at(path(pointer), one_of(options, got)))],
    };
    let here = path(error.instance_path().as_str());
    let rank = match error.kind() {
        Kind::Required { property } => return vec![(0, missing(error, property, reader))],
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let unknown = unexpected
                .iter()
                .take(VIOLATIONS_MAX)
                .map(|name| (0, unknown(error, name, reader)));
            return unknown.collect();
        }
        Kind::Enum { .. } | Kind::Constant { .. } => 0,
        Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } => 1,
        Kind::Type { .. } => 2,
        _ => 3,
    };
    vec![(rank, at(here, message(error, reader)))]
}

fn at(path: String, message: String) -> Violation {
    Violation { path, message }
}

fn missing(error: &ValidationError<'_>, property: &Value, reader: &SchemaReader<'_>) -> Violation {
    let name = property.as_str().unwrap_or_default();
    let fields = fields_of(error, reader);
    let field = fields.iter().find(|field| field.name == name);
    let shape = field.map_or(Shape::Any, |field| Shape::of(field.node));
    let mut message = format!("missing; expected {}", shape_text(&shape));
    let known = |key: &str| fields.iter().any(|field| field.name == key);
    let given = error.instance().as_object().into_iter().flatten();
    let unknown = given.map(|(key, _)| key.as_str());
    let unknown = unknown.filter(|key| !known(key)).take(COMPARED_MAX);
    if let [misspelt] = near(name, unknown, 1).as_slice() {
        message = format!(
            "{message}; is `{}` a misspelling of it?",
            short(misspelt, NAME_CHARS_MAX)
        );
    }
    at(path_to(error, name), message)
}

fn unknown(error: &ValidationError<'_>, name: &str, reader: &SchemaReader<'_>) -> Violation {
    let fields = fields_of(error, reader);
    let given = error.instance();
    let free = fields
        .iter()
        .map(|field| field.name)
        .filter(|name| given.get(name).is_none());
    let free: Vec<&str> = free.take(COMPARED_MAX).collect();
    let hint = match near(name, free.iter().copied(), 1).as_slice() {
        [meant] => format!("; did you mean `{}`?", short(meant, NAME_CHARS_MAX)),
        _ if free.is_empty() => String::new(),
        _ => format!("; unused known keys: {}", key_list(&free)),
    };
    at(path_to(error, name), format!("unknown key{hint}"))
}

fn key_list(keys: &[&str]) -> String {
    let shown = keys.iter().take(KEYS_MAX);
    let mut shown: Vec<String> = shown
        .map(|key| format!("`{}`", short(key, NAME_CHARS_MAX)))
        .collect();
    if keys.len() > KEYS_MAX {
        shown.push("…".to_owned());
    }
    short(&shown.join(", "), EXPECTED_CHARS_MAX)
}

fn message(error: &ValidationError<'_>, reader: &SchemaReader<'_>) -> String {
    let got = error.instance();
    if let Kind::Enum { options } = error.kind() {
        let options: Vec<&Value> = options.as_array().into_iter().flatten().collect();
        return one_of(&options, got);
    }
    match expectation(error, reader) {
        Some(expected) => format!("expected {expected}, got {}", got_text(got)),
        None => short(&error.to_string(), EXPECTED_CHARS_MAX),
    }
}

fn one_of(options: &[&Value], got: &Value) -> String {
    let detail = Detail {
        literals_shown: Detail::FULL.literals_max,
        literals_chars_max: EXPECTED_CHARS_MAX,
        ..Detail::FULL
    };
    let options_text = literals_text(options, ", ", detail);
    let one_of = if options.len() == 1 { "" } else { "one of " };
    format!("expected {one_of}{options_text}, got {}", got_text(got))
}

/// Describes the expected value; `None` if only the validator's message describes it.
fn expectation(error: &ValidationError<'_>, reader: &SchemaReader<'_>) -> Option<String> {
    let expected = match error.kind() {
        Kind::Type { .. } | Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } => {
            shape_text(&Shape::of(schema_of(error, reader)?))
        }
        Kind::Constant { expected_value } => short(&expected_value.to_string(), EXPECTED_CHARS_MAX),
        Kind::Minimum { limit } => format!("at least {limit}"),
        Kind::Maximum { limit } => format!("at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("a multiple of {multiple_of}"),
        Kind::MinLength { limit } => format!("at least {}", render_count(*limit, "character")),
        Kind::MaxLength { limit } => format!("at most {}", render_count(*limit, "character")),
        Kind::MinItems { limit } => format!("at least {}", render_count(*limit, "item")),
        Kind::MaxItems { limit } => format!("at most {}", render_count(*limit, "item")),
        Kind::MinProperties { limit } => format!("at least {}", render_count(*limit, "key")),
        Kind::MaxProperties { limit } => format!("at most {}", render_count(*limit, "key")),
        Kind::Pattern { pattern } => format!("text matching {}", short(pattern, GOT_CHARS_MAX)),
        Kind::UniqueItems => "unique items".to_owned(),
        Kind::FalseSchema => "no value".to_owned(),
        Kind::OneOfMultipleValid { .. } => {
            "a value that matches exactly one alternative".to_owned()
        }
        _ => return None,
    };
    Some(expected)
}

fn render_count(count: u64, thing: &str) -> String {
    printable::count_of(usize::try_from(count).unwrap_or(usize::MAX), thing)
}

fn shape_text(shape: &Shape<'_>) -> String {
    short(&shape.text(Detail::FULL), EXPECTED_CHARS_MAX)
}

fn got_text(value: &Value) -> String {
    short(&value.to_string(), GOT_CHARS_MAX)
}

/// Returns the schema whose keyword produced the error.
pub(super) fn schema_of<'r>(
    error: &ValidationError<'_>,
    reader: &'r SchemaReader<'_>,
) -> Option<SchemaNode<'r>> {
    let keyword = error.schema_path().as_str();
    let (schema, _) = keyword.rsplit_once('/')?;
    reader.at(schema)
}

fn fields_of<'r>(error: &ValidationError<'_>, reader: &'r SchemaReader<'_>) -> Vec<Field<'r>> {
    let schema = schema_of(error, reader);
    schema.map(SchemaNode::fields).unwrap_or_default()
}

fn path_to(error: &ValidationError<'_>, name: &str) -> String {
    let mut path = path(error.instance_path().as_str());
    push_name(&mut path, name);
    path
}

/// Converts a JSON pointer to the usual notation: `labels[0].name`.
fn path(pointer: &str) -> String {
    let mut path = String::new();
    for token in pointer.split('/').skip(1) {
        let token = token.replace("~1", "/").replace("~0", "~");
        // A property named `0` looks like an item; the received value shows which it is.
        if token.bytes().all(|byte| byte.is_ascii_digit()) && !token.is_empty() {
            path.extend(["[", token.as_str(), "]"]);
        } else {
            push_name(&mut path, &token);
        }
    }
    path
}

fn push_name(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(&name_text(&short(name, NAME_CHARS_MAX)));
}

/// Cuts a text to `chars_max` characters, with `…` for the rest.
fn short(text: &str, chars_max: usize) -> String {
    printable::shorten(text, chars_max).into_owned()
}
