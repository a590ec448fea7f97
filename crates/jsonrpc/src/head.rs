//! Reads the id of the answered request from the head of a line.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer as _,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

/// Returns the id of the request that `line` answers, as the peer wrote it; `None` if the line is
/// not a response.
///
/// Parsing stops after the id and a `result` or `error`, so a long response whose id comes first is
/// not parsed to its end, and the head of a discarded line is enough.
pub fn answered_id(line: &[u8]) -> Option<&str> {
    let mut head = LineHead::default();
    let mut text = serde_json::Deserializer::from_slice(line);
    // The parser reports an early stop as an error; the fields that it read before are used.
    let _ = text.deserialize_map(&mut head);
    head.id.filter(|_| head.is_answer)
}

/// The most digits of a number that is certain to fit into 64 bits.
const DIGITS_MAX: usize = 18;

/// Returns the canonical form of an id; `None` if the text is not an id.
pub fn canonical_id(id: &str) -> Option<String> {
    // Most ids are small numbers, which have one spelling.
    let is_number = id.bytes().all(|byte| byte.is_ascii_digit());
    if is_number && (1..=DIGITS_MAX).contains(&id.len()) && (id == "0" || !id.starts_with('0')) {
        return Some(id.to_owned());
    }
    let id: Value = serde_json::from_str(id).ok()?;
    (id.is_string() || id.is_number()).then(|| id.to_string())
}

#[derive(Default)]
struct LineHead<'a> {
    id: Option<&'a str>,
    is_answer: bool,
}

impl<'de> Visitor<'de> for &mut LineHead<'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        #[derive(Deserialize)]
        struct BorrowedKey<'k>(#[serde(borrow)] Cow<'k, str>);
        while let Some(BorrowedKey(key)) = members.next_key::<BorrowedKey<'de>>()? {
            match &*key {
                "id" => self.id = Some(members.next_value::<&RawValue>()?.get()),
                "method" => {
                    self.is_answer = false;
                    return Ok(());
                }
                "result" | "error" => {
                    self.is_answer = true;
                    if self.id.is_some() {
                        return Ok(());
                    }
                    members.next_value::<IgnoredAny>()?;
                }
                _ => {
                    members.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{answered_id, canonical_id};

    #[track_caller]
    fn check(line: &str, expected: Option<&str>) {
        assert_eq!(answered_id(line.as_bytes()), expected, "{line}");
    }

    #[test]
    fn an_answer_is_known_whatever_the_order_of_its_members() {
        check(r#"{"jsonrpc":"2.0","id":12,"result":{"id":1"#, Some("12"));
        check(
            r#"{"jsonrpc":"2.0","id":"a\",b","error":{}}"#,
            Some(r#""a\",b""#),
        );
        check(
            r#" { "id" : 7 , "result" : {}, "jsonrpc":"2.0"}"#,
            Some("7"),
        );
        check(r#"{"result":{"id":1},"id":8,"jsonrpc":"2.0"}"#, Some("8"));
        check(
            r#"{"error":{"code":1},"jsonrpc":"2.0","id":null}"#,
            Some("null"),
        );
    }

    #[test]
    fn what_is_no_answer_has_no_id() {
        check(r#"{"jsonrpc":"2.0","id":3,"method":"roots/list"}"#, None);
        check(r#"{"jsonrpc":"2.0","method":"x","params":{"id":1}}"#, None);
        check(r#"{"jsonrpc":"2.0","id":3}"#, None);
        check(r#"[{"id":3,"result":{}}]"#, None);
        check("", None);
    }

    #[test]
    fn ids_are_equal_in_every_spelling() {
        assert_eq!(canonical_id(r#""\u0061""#), canonical_id(r#""a""#));
        assert_eq!(canonical_id(" 7 ").as_deref(), Some("7"));
        assert_eq!(canonical_id("0").as_deref(), Some("0"));
        assert_eq!(canonical_id("120").as_deref(), Some("120"));
        assert_eq!(canonical_id("012"), None);
        assert_eq!(canonical_id(""), None);
        assert_eq!(canonical_id("null"), None);
    }
}
