//! Converts values that have one possible meaning under the schema: `"5"` for an integer.
//!
//! The validator's errors name the value and the expected type, so references, drafts and
//! alternatives are not interpreted a second time. Nothing is guessed: `"a,b"` for a list of strings
//! could be one string or two, and stays unchanged. A required property that has a default and is left out gets
//! the default.

use std::collections::{BTreeMap, BTreeSet};

use jsonschema::{ValidationError, error::ValidationErrorKind};
use serde_json::{Map, Value};

use super::{
    finding::{Finding, findings, literals_here, would_accept},
    ready::Ready,
    violation::schema_of,
};
use crate::schema::SchemaReader;

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
        for (pointer, fix) in fixes {
            match fix {
                Fix::Replace(new) => {
                    if let Some(place) = value.pointer_mut(&pointer) {
                        *place = new;
                    }
                }
                Fix::Remove => remove(value, &pointer),
                Fix::Insert(default) => insert(value, &pointer, default),
            }
        }
    }
    Some(())
}

#[derive(Debug)]
enum Fix {
    Replace(Value),
    /// Removes the property.
    Remove,
    /// Adds the property with the default of its schema.
    Insert(Value),
}

fn remove(whole: &mut Value, pointer: &str) {
    if let Some((parent, name)) = parent_of(whole, pointer) {
        // The other members keep their order.
        parent.shift_remove(&name);
    }
}

fn insert(whole: &mut Value, pointer: &str, value: Value) {
    if let Some((parent, name)) = parent_of(whole, pointer) {
        parent.entry(name).or_insert(value);
    }
}

/// Returns the object that has the property at this pointer, and the name of the property.
fn parent_of<'w>(
    whole: &'w mut Value,
    pointer: &str,
) -> Option<(&'w mut Map<String, Value>, String)> {
    let (parent, name) = pointer.rsplit_once('/')?;
    let parent = whole.pointer_mut(parent)?.as_object_mut()?;
    Some((parent, unescape(name)))
}

fn unescape(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

/// Returns the fixes by the pointers of their values.
fn find_fixes(ready: &Ready, whole: &Value) -> Option<BTreeMap<String, Fix>> {
    let errors = ready.errors(whole)?;
    let reader = ready.reader();
    let missing = errors.iter();
    let missing = missing.filter_map(|error| find_default(error, &reader));
    let mut fixes: BTreeMap<String, Fix> = missing
        .map(|(pointer, default)| (pointer, Fix::Insert(default)))
        .collect();
    for finding in errors.iter().flat_map(findings) {
        let (pointer, fix) = match finding {
            Finding::Error(error) => (error.instance_path().as_str(), find_fix(error)),
            Finding::Choice {
                pointer,
                got,
                options,
            } => {
                let meant = got.as_str().and_then(|got| match_case(got, options));
                (pointer, meant.map(Fix::Replace))
            }
        };
        if let Some(fix) = fix {
            fixes.entry(pointer.to_owned()).or_insert(fix);
        }
    }
    keep_droppable(ready, whole, &mut fixes)?;
    Some(fixes)
}

fn find_fix(error: &ValidationError<'_>) -> Option<Fix> {
    // The arguments themselves are always an object, even if the schema expects another type.
    if error.instance_path().as_str().is_empty() {
        return None;
    }
    match error.instance().as_ref() {
        Value::Null => Some(Fix::Remove),
        other => Some(Fix::Replace(convert(error, other)?)),
    }
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
fn keep_droppable(ready: &Ready, whole: &Value, fixes: &mut BTreeMap<String, Fix>) -> Option<()> {
    let is_null = |fix: &Fix| matches!(fix, Fix::Remove);
    fixes.retain(|pointer, fix| !is_null(fix) || is_property(whole, pointer));
    let mut nulls = fixes.iter().filter(|(_, fix)| is_null(fix)).peekable();
    if nulls.peek().is_none() {
        return Some(());
    }
    let mut without = whole.clone();
    for (pointer, _) in nulls {
        remove(&mut without, pointer);
    }
    let errors = ready.errors(&without)?;
    let reader = ready.reader();
    let required = errors.iter();
    let required = required.filter(|error| find_default(error, &reader).is_none());
    let required = required.flat_map(findings);
    let required: BTreeSet<String> = required.filter_map(|it| find_missing(&it)).collect();
    fixes.retain(|pointer, fix| !is_null(fix) || !required.contains(pointer));
    Some(())
}

fn is_property(whole: &Value, pointer: &str) -> bool {
    let parent = pointer.rsplit_once('/');
    let parent = parent.and_then(|(parent, _)| whole.pointer(parent));
    parent.is_some_and(Value::is_object)
}

/// Returns the pointer and the default of a missing required property. Only one that the schema requires in any
/// case: of the alternatives of `anyOf` and `oneOf`, a default must not choose one.
fn find_default(error: &ValidationError<'_>, reader: &SchemaReader<'_>) -> Option<(String, Value)> {
    let ValidationErrorKind::Required { property } = error.kind() else {
        return None;
    };
    let name = property.as_str()?;
    let schema = schema_of(error, reader)?;
    let default = schema.property(name)?.annotation("default")?;
    let pointer = error.instance_path().join(name);
    Some((pointer.as_str().to_owned(), default.clone()))
}

/// Returns the pointer of a missing required property.
fn find_missing(finding: &Finding<'_>) -> Option<String> {
    let Finding::Error(error) = finding else {
        return None;
    };
    let ValidationErrorKind::Required { property } = error.kind() else {
        return None;
    };
    let missing = error.instance_path().join(property.as_str()?);
    Some(missing.as_str().to_owned())
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
