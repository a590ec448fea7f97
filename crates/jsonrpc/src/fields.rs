//! The members of a JSON object, as unparsed text.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::scan::{scan_items, scan_members, unescape};

/// The members of a JSON object in source order, with unparsed values.
#[derive(Debug)]
pub struct Fields<'a>(pub Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Fields<'a> {
    /// Parses the text; returns `None` if it is not a JSON object.
    pub fn of(text: &'a str) -> Option<Self> {
        let mut fields = Vec::new();
        scan_members(text, |key, value| {
            fields.push((unquote(key)?, value));
            Some(())
        })?;
        Some(Self(fields))
    }

    /// Returns the first member with this name.
    pub fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.0
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| *value)
    }

    /// Returns the member, unless it is absent or `null`.
    pub fn filled(&self, key: &str) -> Option<&'a RawValue> {
        self.get(key).filter(|value| value.get() != "null")
    }

    /// Returns the content blocks of a tool's result.
    pub fn content(&self) -> Option<Vec<&'a RawValue>> {
        scan_items(self.get("content")?.get())
    }
}

/// Returns the text of a JSON string; `None` for any other value.
pub fn text_of(raw: &RawValue) -> Option<Cow<'_, str>> {
    unquote(raw.get())
}

/// Returns a text as a JSON string.
pub fn quote(text: &str) -> String {
    // Text always has a form as JSON.
    serde_json::to_string(text).unwrap_or_default()
}

/// Returns the text of a valid string; `None` for any other value, and for a string with half a
/// surrogate pair.
pub(crate) fn unquote(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    unescape(inner).map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::{Fields, text_of};

    #[test]
    fn members_keep_their_text_and_order() {
        let fields = Fields::of(r#"{"b": 1.0, "a\u0041": [ 1 ], "n": null}"#).expect("an object");
        let seen: Vec<_> = fields
            .0
            .iter()
            .map(|(key, value)| (key.as_ref(), value.get()))
            .collect();
        assert_eq!(seen, [("b", "1.0"), ("aA", "[ 1 ]"), ("n", "null")]);
        assert!(fields.filled("n").is_none() && fields.get("n").is_some());
        assert!(Fields::of("[1]").is_none());
        assert_eq!(text_of(fields.get("b").expect("there")), None);
    }
}
