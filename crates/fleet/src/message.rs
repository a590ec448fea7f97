//! The outer shape of a JSON-RPC message, read without touching what it carries.

use std::borrow::Cow;

use bytes::Bytes;
use bytestring::ByteString;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::scan;

/// One JSON-RPC message, its parts still as text.
#[derive(Debug)]
pub struct Message<'a> {
    pub id: Option<&'a RawValue>,
    pub method: Option<Cow<'a, str>>,
    pub params: Option<&'a RawValue>,
    pub result: Option<&'a str>,
    pub error: Option<&'a RawValue>,
}

/// From here on a message is scanned instead of parsed.
const LONG_BYTES: usize = 16 * 1024;

impl<'a> Message<'a> {
    /// `None` for anything that is no JSON object in UTF-8. All of it is checked: a part of a
    /// message can be sent on.
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        let start = line.iter().find(|byte| !byte.is_ascii_whitespace());
        if start != Some(&b'{') {
            return None;
        }
        if line.len() >= LONG_BYTES {
            let members = scan::members(std::str::from_utf8(line).ok()?)?;
            // Nobody writes `"\u0069d"`; whoever does is read by the parser.
            if members.iter().all(|(key, _)| !key.contains('\\')) {
                return Self::of_members(&members);
            }
        }
        serde_json::from_slice::<Parts<'_>>(line)
            .ok()
            .map(Self::of_parts)
    }

    fn of_parts(parts: Parts<'a>) -> Self {
        Self {
            id: parts.id,
            method: parts.method,
            params: parts.params,
            result: parts.result.map(RawValue::get),
            error: parts.error,
        }
    }

    fn of_members(members: &[(&'a str, &'a str)]) -> Option<Self> {
        let one = |key: &str| {
            let mut found = members.iter().filter(|(name, _)| *name == key);
            let value = found.next().map(|(_, value)| *value);
            // The same key twice means nothing in particular.
            found
                .next()
                .is_none()
                .then(|| value.filter(|it| *it != "null"))
        };
        let raw = |value: Option<&'a str>| value.and_then(|it| serde_json::from_str(it).ok());
        let method = one("method")?.map(serde_json::from_str::<Text<'_>>);
        Some(Self {
            id: raw(one("id")?),
            method: method.transpose().ok()?.map(|text| text.0),
            params: raw(one("params")?),
            result: one("result")?,
            error: raw(one("error")?),
        })
    }
}

#[derive(Deserialize)]
struct Parts<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// A piece of JSON text that somebody sent, kept as its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Json(ByteString);

impl Json {
    /// The piece `part` of `line`, without a copy.
    pub fn part_of(line: &Bytes, part: &str) -> Self {
        let part = line.slice_ref(part.as_bytes());
        Self(ByteString::try_from(part).expect("it was a str a moment ago"))
    }

    /// Text that the caller put together from pieces of JSON; it is not read again.
    pub fn of_built(text: String) -> Self {
        debug_assert!(serde_json::from_str::<&RawValue>(&text).is_ok(), "{text}");
        Self(text.into())
    }

    pub fn null() -> Self {
        Self(ByteString::from_static("null"))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn bytes(&self) -> Bytes {
        self.0.as_bytes().clone()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Box<RawValue>> for Json {
    fn from(raw: Box<RawValue>) -> Self {
        let text: Box<str> = raw.into();
        Self(String::from(text).into())
    }
}

/// A JSON-RPC error that a server answered with; `code` is text because servers were seen to
/// send strings and numbers outside every integer type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtocolError {
    pub code: String,
    pub message: String,
    pub data: Option<String>,
}

impl ProtocolError {
    pub(crate) fn read(raw: &RawValue) -> Self {
        let Ok(fields) = serde_json::from_str::<ErrorFields<'_>>(raw.get()) else {
            return Self::unreadable(raw.get());
        };
        let text = |raw: &RawValue| {
            serde_json::from_str::<String>(raw.get()).unwrap_or_else(|_| raw.get().to_owned())
        };
        Self {
            code: fields.code.map_or_else(|| "none".to_owned(), text),
            message: fields.message.map_or_else(String::new, text),
            data: fields.data.map(text),
        }
    }

    fn unreadable(text: &str) -> Self {
        Self {
            code: "none".to_owned(),
            message: text.chars().take(500).collect(),
            data: None,
        }
    }
}

#[derive(Deserialize)]
struct ErrorFields<'a> {
    #[serde(borrow, default)]
    code: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}

#[cfg(test)]
mod tests {
    use super::{LONG_BYTES, Message};

    /// A long message is read as a short one with the same members is.
    #[track_caller]
    fn check(head: &str) {
        let show = |text: &str| {
            Message::parse(text.as_bytes()).map(|message| {
                let result = message.result.map(|result| result.len().min(20));
                let raw =
                    |raw: Option<&serde_json::value::RawValue>| raw.map(|raw| raw.get().to_owned());
                let method = message.method.map(std::borrow::Cow::into_owned);
                (
                    raw(message.id),
                    method,
                    raw(message.params),
                    result,
                    raw(message.error),
                )
            })
        };
        let long = format!("{{{head}\"pad\":\"{}\"}}", "x".repeat(LONG_BYTES));
        assert_eq!(
            show(&long),
            show(&format!("{{{head}\"pad\":\"\"}}")),
            "{head}"
        );
    }

    #[test]
    fn long_and_short_messages_are_read_alike() {
        check(r#""id":1,"result":{"a":1},"#);
        check(r#""id":"x", "method":"tools\/call","params":{"b":[2]},"#);
        check(r#""id":null,"error":{"code":"E"},"result":null,"#);
        check(r#""id":1,"id":2,"#);
        check(r#""\u0069d":1,"result":2,"#);
        check(r#""id":1,"method":5,"#);
        check(r#""id":01,"#);
    }
}
