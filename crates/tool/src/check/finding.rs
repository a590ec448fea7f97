//! Findings: validation errors reduced to the alternative of `anyOf` or `oneOf` that was meant.

use jsonschema::{
    JsonType, ValidationError,
    error::{TypeKind, ValidationErrorKind as Kind},
};
use serde_json::Value;

/// The useful part of a validation error.
#[derive(Debug)]
pub(super) enum Finding<'e> {
    Error(&'e ValidationError<'e>),
    /// The alternatives differ by the literal of one field, and none of the literals is the received
    /// value.
    Choice {
        pointer: &'e str,
        got: &'e Value,
        options: Vec<&'e Value>,
    },
}

/// Returns the error itself, or the findings of the alternative that was most likely meant.
pub(super) fn findings<'e>(error: &'e ValidationError<'e>) -> Vec<Finding<'e>> {
    let alternatives = alternatives(error);
    let here = error.instance_path();
    let refuses = |e: &&ValidationError<'_>| {
        let is_of_kind = matches!(
            e.kind(),
            Kind::Type { .. } | Kind::Enum { .. } | Kind::Constant { .. }
        );
        is_of_kind && e.instance_path() == here
    };
    let meant = alternatives.iter();
    let meant: Vec<_> = meant
        .filter(|errors| !errors.iter().any(|e| refuses(&e)))
        .collect();
    let Some(best) = meant.iter().min_by_key(|errors| errors.len()) else {
        return vec![Finding::Error(error)];
    };
    if meant.len() > 1
        && let Some(choice) = choice(&meant)
    {
        return vec![choice];
    }
    best.iter().flat_map(findings).collect()
}

fn alternatives<'e>(error: &'e ValidationError<'e>) -> &'e [Vec<ValidationError<'static>>] {
    match error.kind() {
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => context,
        _ => &[],
    }
}

/// Returns the literals by which the alternatives differ, if every alternative rejects the same
/// field because of its literal.
fn choice<'e>(alternatives: &[&'e Vec<ValidationError<'static>>]) -> Option<Finding<'e>> {
    let mut options = Vec::new();
    let mut place: Option<&'e ValidationError<'static>> = None;
    for errors in alternatives {
        let literal = errors.iter().find(|error| !literals(error).is_empty())?;
        if place.is_some_and(|place| place.instance_path() != literal.instance_path()) {
            return None;
        }
        options.extend(literals(literal));
        place = Some(literal);
    }
    let place = place?;
    Some(Finding::Choice {
        pointer: place.instance_path().as_str(),
        got: place.instance(),
        options,
    })
}

fn literals<'e>(error: &'e ValidationError<'_>) -> Vec<&'e Value> {
    match error.kind() {
        Kind::Constant { expected_value } => vec![expected_value],
        Kind::Enum { options } => options.as_array().into_iter().flatten().collect(),
        _ => Vec::new(),
    }
}

/// Returns the literals that are valid here: those of the error and of its alternatives.
pub(super) fn literals_here<'e>(error: &'e ValidationError<'_>) -> Vec<&'e Value> {
    let here = error.instance_path();
    let of_alternatives = alternatives(error)
        .iter()
        .flatten()
        .filter(|e| e.instance_path() == here)
        .flat_map(literals_here);
    literals(error).into_iter().chain(of_alternatives).collect()
}

/// Returns true if this error, taken alone, would not occur for the value `candidate`.
pub(super) fn would_accept(error: &ValidationError<'_>, candidate: &Value) -> bool {
    let here = error.instance_path();
    match error.kind() {
        Kind::Type { kind } => is_of(kind, candidate),
        Kind::Enum { .. } | Kind::Constant { .. } => literals(error).contains(&candidate),
        _ => alternatives(error).iter().any(|errors| {
            let about_it = |e: &&ValidationError<'_>| e.instance_path() == here;
            errors
                .iter()
                .filter(about_it)
                .all(|e| would_accept(e, candidate))
        }),
    }
}

fn is_of(kind: &TypeKind, value: &Value) -> bool {
    match kind {
        TypeKind::Single(json_type) => is_of_type(*json_type, value),
        TypeKind::Multiple(types) => types.iter().any(|json_type| is_of_type(json_type, value)),
    }
}

fn is_of_type(json_type: JsonType, value: &Value) -> bool {
    match json_type {
        JsonType::Array => value.is_array(),
        JsonType::Boolean => value.is_boolean(),
        JsonType::Integer => value.is_i64() || value.is_u64(),
        JsonType::Null => value.is_null(),
        JsonType::Number => value.is_number(),
        JsonType::Object => value.is_object(),
        JsonType::String => value.is_string(),
    }
}
