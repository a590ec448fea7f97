//! The members of a JSON object, as unparsed text.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// The members of a JSON object in source order, with unparsed values.
#[derive(Debug)]
pub struct Fields<'a>(pub Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Fields<'a> {
    /// Parses the text; returns `None` if it is not a JSON object.
    pub fn of(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Returns the first member with this name.
    pub fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.0
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| *value)
    }

    /// Returns true if there is a member of this name, even if it is `null`.
    pub fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Returns the member, unless it is absent or `null`.
    pub fn filled(&self, key: &str) -> Option<&'a RawValue> {
        self.get(key).filter(|value| value.get() != "null")
    }

    /// Returns the content blocks of a tool's result.
    pub fn content(&self) -> Option<Vec<&'a RawValue>> {
        serde_json::from_str(self.get("content")?.get()).ok()
    }
}

/// Returns the text of a JSON string; `None` for any other value.
pub fn text_of(raw: &RawValue) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct BorrowedText<'a>(#[serde(borrow)] Cow<'a, str>);
    if !raw.get().starts_with('"') {
        return None;
    }
    serde_json::from_str::<BorrowedText<'_>>(raw.get())
        .ok()
        .map(|text| text.0)
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
        #[derive(Deserialize)]
        struct BorrowedKey<'a>(#[serde(borrow)] Cow<'a, str>);
        let mut fields = Vec::new();
        while let Some((BorrowedKey(key), value)) =
            map.next_entry::<BorrowedKey<'de>, &'de RawValue>()?
        {
            fields.push((key, value));
        }
        Ok(Fields(fields))
    }
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
        assert!(fields.filled("n").is_none() && fields.has("n"));
        assert!(Fields::of("[1]").is_none());
        assert_eq!(text_of(fields.get("b").expect("there")), None);
    }
}
