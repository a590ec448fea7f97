//! The outer shape of a JSON-RPC message, read without touching what it carries.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

/// One JSON-RPC message, its parts still as text.
#[derive(Debug, Deserialize)]
pub struct Message<'a> {
    #[serde(borrow, default)]
    pub id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub error: Option<&'a RawValue>,
}

impl<'a> Message<'a> {
    /// `None` for anything that is no JSON object in UTF-8.
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        let start = line.iter().find(|byte| !byte.is_ascii_whitespace());
        if start != Some(&b'{') {
            return None;
        }
        serde_json::from_slice(line).ok()
    }
}

/// A piece of JSON text that somebody sent, kept as its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Json(Bytes);

impl Json {
    /// The piece `part` of `line`, without a copy.
    pub fn part_of(line: &Bytes, part: &RawValue) -> Self {
        Self(line.slice_ref(part.get().as_bytes()))
    }

    /// Text that the caller put together from pieces of JSON; it is not read again.
    pub fn of_built(text: String) -> Self {
        debug_assert!(serde_json::from_str::<&RawValue>(&text).is_ok(), "{text}");
        Self(Bytes::from(text))
    }

    pub fn null() -> Self {
        Self(Bytes::from_static(b"null"))
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("built from a str only")
    }

    pub fn bytes(&self) -> Bytes {
        self.0.clone()
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
        Self(Bytes::from(String::from(text)))
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
