//! The walk through the file's tables: the current place, and the values found so far.

use std::ops::Range;

use serde_json::Value;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use crate::{
    keys::{self, KeyMatch, ValueKind},
    mistake::{Fault, shown_key},
    rules::{self, Written},
};

/// A place in the walk: the pattern in the table of keys, and the key as the user wrote it.
#[derive(Debug, Default, Clone)]
pub(super) struct At {
    pub(super) pattern: &'static str,
    pub(super) key: String,
    pub(super) span: Range<usize>,
}

impl At {
    /// Returns the place of a member of a value.
    pub(super) fn member(&self, name: &str, span: Range<usize>) -> At {
        let key = format!("{}.{}", self.key, shown_key(name));
        At { key, span, ..*self }
    }

    /// Returns the place of an item of a list.
    pub(super) fn item(&self, index: usize, span: Range<usize>) -> At {
        let key = format!("{}[{index}]", self.key);
        At { key, span, ..*self }
    }

    /// Returns the place one step down in the table of keys; `None` if the table has no such key.
    pub(super) fn child(&self, name: &str, span: Range<usize>) -> (At, Option<KeyMatch>) {
        let key = if self.key.is_empty() {
            shown_key(name)
        } else {
            format!("{}.{}", self.key, shown_key(name))
        };
        let pattern = keys::child(self.pattern, name);
        let found = pattern.as_deref().and_then(keys::find);
        let pattern = found.map_or("", KeyMatch::path);
        (At { pattern, key, span }, found)
    }
}

/// A mistake at a byte of the file.
#[derive(Debug)]
pub(super) struct PlacedFault {
    pub(super) byte: usize,
    pub(super) key: String,
    pub(super) fault: Fault,
    /// True if it says that something is missing, which an unreadable line may explain.
    pub(super) missing: bool,
}

impl PlacedFault {
    pub(super) fn new(span: Range<usize>, at: &At, fault: Fault) -> Self {
        Self {
            byte: span.start,
            key: at.key.clone(),
            fault,
            missing: false,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Walk {
    pub(super) noted: Vec<PlacedFault>,
    /// The former keys.
    pub(super) removed: Vec<PlacedFault>,
    /// The key and the first byte of each value.
    pub(super) starts: Vec<(String, usize)>,
    /// True if the file has `[commands.NAME]`.
    pub(super) has_commands: bool,
}

impl Walk {
    pub(super) fn read_scalar(
        &mut self,
        at: &At,
        kind: &ValueKind,
        value: &DeValue<'_>,
    ) -> Option<Value> {
        let read = rules::read(kind, as_written(value));
        read.map_err(|fault| self.note(at.span.clone(), at, fault))
            .ok()
    }

    pub(super) fn note(&mut self, span: Range<usize>, at: &At, fault: Fault) {
        self.noted.push(PlacedFault::new(span, at, fault));
    }
}

pub(super) fn as_written<'v>(value: &'v DeValue<'_>) -> Written<'v> {
    match value {
        DeValue::String(text) => Written::Text(text),
        DeValue::Integer(number) => {
            let read = i128::from_str_radix(number.as_str(), number.radix());
            Written::Number(read.map_err(|_| number.as_str()))
        }
        DeValue::Boolean(on) => Written::Switch(*on),
        DeValue::Float(_) => Written::Other("a number with a fraction"),
        DeValue::Datetime(_) => Written::Other("a date or time"),
        DeValue::Array(_) => Written::Other("a list"),
        DeValue::Table(_) => Written::Other("a table"),
    }
}

pub(super) type Name<'i> = Spanned<std::borrow::Cow<'i, str>>;
pub(super) type SpannedValue<'i> = Spanned<DeValue<'i>>;

/// Returns the entries in the order of the file; the parser sorts them by name.
pub(super) fn in_order<'t, 'i>(
    table: &'t DeTable<'i>,
) -> Vec<(&'t Name<'i>, &'t SpannedValue<'i>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(name, _)| name.span().start);
    entries
}
