//! Converts values that have one possible meaning under the schema: `"5"` for an integer.
//!
//! The validator's errors name the value and the expected type, so references, drafts and
//! alternatives are not interpreted a second time. Nothing is guessed: `"a,b"` for a list of strings
//! could be one string or two, and stays unchanged.

use std::collections::{BTreeMap, BTreeSet};

use jsonschema::{ValidationError, error::ValidationErrorKind};
use serde_json::Value;

use super::{
    finding::{Finding, findings, literals_here, would_accept},
    ready::Ready,
};

/// The most rounds of conversion: a JSON text parsed in one round is converted in the next.
const ROUNDS_MAX: usize = 4;

/// Converts values with one possible meaning; the others stay unchanged. Returns `None` if that would
/// take too long.
pub(super) fn coerce(ready: &Ready, value: &mut Value) -> Option<()> {
    for _ in 0..ROUNDS_MAX {
        let fixes = find_fixes(ready, value)?;
        if fixes.is_empty() {
            break;
        }
        for fix in fixes {
            fix.apply(value);
        }
    }
    Some(())
}

#[derive(Debug)]
struct Fix {
    pointer: String,
    /// `None` removes the property.
    value: Option<Value>,
}

impl Fix {
    fn apply(self, whole: &mut Value) {
        match self.value {
            Some(value) => {
                if let Some(place) = whole.pointer_mut(&self.pointer) {
                    *place = value;
                }
            }
            None => remove(whole, &self.pointer),
        }
    }
}

fn remove(whole: &mut Value, pointer: &str) {
    let Some((parent, name)) = pointer.rsplit_once('/') else {
        return;
    };
    if let Some(Value::Object(parent)) = whole.pointer_mut(parent) {
        // The other members keep their order.
        parent.shift_remove(&unescape(name));
    }
}

fn unescape(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

fn find_fixes(ready: &Ready, whole: &Value) -> Option<Vec<Fix>> {
    let errors = ready.errors(whole)?;
    let mut fixes: BTreeMap<&str, Fix> = BTreeMap::new();
    for finding in errors.iter().flat_map(findings) {
        let (pointer, fix) = match finding {
            Finding::Error(error) => (error.instance_path().as_str(), find_fix(error)),
            Finding::Choice {
                pointer,
                got,
                options,
            } => (pointer, fix_choice(pointer, got, options)),
        };
        if let Some(fix) = fix {
            fixes.entry(pointer).or_insert(fix);
        }
    }
    let (nulls, mut read): (Vec<Fix>, Vec<Fix>) =
        fixes.into_values().partition(|fix| fix.value.is_none());
    read.extend(droppable(ready, whole, nulls)?);
    Some(read)
}

fn find_fix(error: &ValidationError<'_>) -> Option<Fix> {
    let value = match error.instance().as_ref() {
        Value::Null => None,
        other => Some(convert(error, other)?),
    };
    let pointer = error.instance_path().as_str().to_owned();
    // The arguments themselves are always an object, even if the schema expects another type.
    let is_inside = !pointer.is_empty();
    is_inside.then_some(Fix { pointer, value })
}

fn fix_choice(pointer: &str, got: &Value, options: Vec<&Value>) -> Option<Fix> {
    let value = Some(match_case(got.as_str()?, options)?);
    let pointer = pointer.to_owned();
    Some(Fix { pointer, value })
}

fn convert(error: &ValidationError<'_>, value: &Value) -> Option<Value> {
    let accepts = |candidate: &Value| would_accept(error, candidate);
    match value {
        Value::String(text) => parse_text(text, accepts)
            .or_else(|| match_case(text, literals_here(error)))
            .or_else(|| wrap_text(text, accepts)),
        Value::Bool(_) | Value::Number(_) => {
            stringify(value, accepts).or_else(|| wrap(value, accepts))
        }
        Value::Object(_) => wrap(value, accepts),
        Value::Null | Value::Array(_) => None,
    }
}

/// Keeps the `null` properties that may be omitted: `null` then means absent. One validation without
/// all of them shows which are required.
fn droppable(ready: &Ready, whole: &Value, mut nulls: Vec<Fix>) -> Option<Vec<Fix>> {
    nulls.retain(|null| is_property(whole, &null.pointer));
    if nulls.is_empty() {
        return Some(nulls);
    }
    let mut without = whole.clone();
    for null in &nulls {
        remove(&mut without, &null.pointer);
    }
    let errors = ready.errors(&without)?;
    let required: BTreeSet<String> = errors
        .iter()
        .flat_map(findings)
        .filter_map(|finding| find_missing(&finding))
        .collect();
    nulls.retain(|null| !required.contains(&null.pointer));
    Some(nulls)
}

fn is_property(whole: &Value, pointer: &str) -> bool {
    let parent = pointer.rsplit_once('/').map(|(parent, _)| parent);
    parent
        .and_then(|parent| whole.pointer(parent))
        .is_some_and(Value::is_object)
}

/// Returns the pointer of a missing required property.
fn find_missing(finding: &Finding<'_>) -> Option<String> {
    let Finding::Error(error) = finding else {
        return None;
    };
    let ValidationErrorKind::Required { property } = error.kind() else {
        return None;
    };
    Some(
        error
            .instance_path()
            .join(property.as_str()?)
            .as_str()
            .to_owned(),
    )
}

/// Parses a string that contains JSON; `True` and `FALSE` count as JSON.
fn parse_text(text: &str, accepts: impl Fn(&Value) -> bool) -> Option<Value> {
    let text = text.trim();
    let boolean = ["true", "false"]
        .into_iter()
        .find(|word| word.eq_ignore_ascii_case(text));
    let value: Value = serde_json::from_str(boolean.unwrap_or(text)).ok()?;
    accepts(&value).then_some(value)
}

/// Returns the literal that equals the text except for letter case and surrounding white space, if
/// there is exactly one.
fn match_case(text: &str, literals: Vec<&Value>) -> Option<Value> {
    let folded = |text: &str| text.trim().to_lowercase();
    let wanted = folded(text);
    let is_meant = |literal: &&Value| literal.as_str().is_some_and(|it| folded(it) == wanted);
    let mut meant = literals.into_iter().filter(is_meant);
    let first = meant.next()?;
    meant.all(|other| other == first).then(|| first.clone())
}

/// Converts an integer or a boolean to a string. A fraction has several spellings (`1.10` arrives as
/// `1.1`), and is left unchanged.
fn stringify(value: &Value, accepts: impl Fn(&Value) -> bool) -> Option<Value> {
    let text = Value::String(value.to_string());
    (!value.is_f64() && accepts(&text)).then_some(text)
}

/// Wraps a single value in a list.
fn wrap(value: &Value, accepts: impl Fn(&Value) -> bool) -> Option<Value> {
    let list = Value::Array(vec![value.clone()]);
    accepts(&list).then_some(list)
}

fn wrap_text(text: &str, accepts: impl Fn(&Value) -> bool) -> Option<Value> {
    let may_be_many = text.trim().is_empty()
        || text.contains([',', ';', '\n'])
        || text.trim_start().starts_with(['[', '{']);
    if may_be_many {
        return None;
    }
    wrap(&Value::from(text), accepts)
}
