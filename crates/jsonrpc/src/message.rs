//! The outer structure of a JSON-RPC message, parsed without its payload.

use std::borrow::Cow;

use bytes::Bytes;
use bytestring::ByteString;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    fields::{quote, text_of, unquote},
    known::{KnownString, KnownStrings},
    limits::UNREADABLE_CHARS_MAX,
    one_line::one_line,
    scan::scan_members,
    surrogates::without_lone_surrogates,
};

/// One JSON-RPC message, whose parts are unparsed text. A member that is `null` counts as absent.
#[derive(Debug, Default)]
pub struct Message<'a> {
    /// The id of a request or a response.
    pub id: Option<&'a RawValue>,
    /// True if its id is `null`, which no request may have.
    has_null_id: bool,
    /// The method of a request or a notification; a response has none.
    pub method: Option<Cow<'a, str>>,
    /// The parameters of the method.
    pub params: Option<&'a RawValue>,
    /// The result of a successful response.
    pub result: Option<&'a RawValue>,
    /// The error of an error response.
    pub error: Option<&'a RawValue>,
    /// The known strings of the whole message.
    pub(crate) known: KnownStrings,
}

impl<'a> Message<'a> {
    /// Parses a message on one line; returns `None` for anything that is not a JSON object in UTF-8, if a
    /// member is there twice, and for a text with a raw line break before its end ([`crate::one_line`]
    /// replaces them). The whole text is validated, so parts of the message can be forwarded.
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        if memchr::memchr2(b'\n', b'\r', line).is_some() {
            return None;
        }
        let mut message = Self::default();
        let mut seen = [false; 5];
        let known = scan_members(str::from_utf8(line).ok()?, |key, value| {
            // A name with half a surrogate pair is none of these.
            let key = unquote(key).unwrap_or_default();
            let Some(place) = MEMBERS.iter().position(|member| *member == key) else {
                return Some(());
            };
            if std::mem::replace(&mut seen[place], true) {
                return None;
            }
            if value.get() == "null" {
                message.has_null_id |= place == 0;
                return Some(());
            }
            match place {
                0 => message.id = Some(value),
                1 => message.method = Some(method_of(value)?),
                2 => message.params = Some(value),
                3 => message.result = Some(value),
                _ => message.error = Some(value),
            }
            Some(())
        })?;
        Some(Self { known, ..message })
    }

    /// Returns true if it has an id that is neither a string nor a number nor `null`.
    pub fn has_invalid_id(&self) -> bool {
        let is_id = |first: char| matches!(first, '"' | '-') || first.is_ascii_digit();
        self.id.is_some_and(|id| !id.get().starts_with(is_id))
    }

    /// Returns true if it is a request whose id is no id of MCP: neither a string nor a number. It is answered
    /// with an error whose id is `null`. A notification may have the id `null`, as some clients write it.
    pub fn is_request_without_valid_id(&self) -> bool {
        let is_notification = |method: &str| method.starts_with("notifications/");
        self.method.as_deref().is_some_and(|method| {
            self.has_invalid_id() || self.has_null_id && !is_notification(method)
        })
    }

    /// Returns the line of this message with another id, which is JSON text; unchanged if the message has
    /// no id.
    pub fn with_id(&self, line: &Bytes, id: &str) -> Bytes {
        let Some(own) = self.id.map(RawValue::get) else {
            return line.clone();
        };
        let begin = own.as_ptr().addr() - line.as_ptr().addr();
        let (before, after) = (&line[..begin], &line[begin + own.len()..]);
        [before, id.as_bytes(), after].concat().into()
    }
}

/// Returns the method; half a surrogate pair is U+FFFD in it, as in all text that the program reads.
fn method_of(value: &RawValue) -> Option<Cow<'_, str>> {
    text_of(value).or_else(|| {
        let text = unquote(&without_lone_surrogates(value.get()))?.into_owned();
        Some(Cow::Owned(text))
    })
}

const MEMBERS: [&str; 5] = ["id", "method", "params", "result", "error"];

/// A piece of JSON text from a peer, stored as the received bytes. It is one line: every way to build it
/// replaces raw line breaks.
#[derive(Debug, Clone)]
pub struct Json {
    text: ByteString,
    /// The known strings of the message that the text is from; `None` if it was not scanned.
    known: Option<KnownStrings>,
}

impl Json {
    /// Returns `part` of `line`, without a copy.
    pub fn part_of(line: &Bytes, part: &RawValue) -> Self {
        let part = line.slice_ref(part.get().as_bytes());
        Self::from(ByteString::try_from(part).expect("it was a str a moment ago"))
    }

    /// Does the same with the known strings of the message in that line.
    pub fn part_of_message(line: &Bytes, part: &RawValue, message: &Message<'_>) -> Self {
        Self {
            known: Some(message.known),
            ..Self::part_of(line, part)
        }
    }

    /// Returns false if the text does not contain the string. Searches a long text only if it is no part
    /// of a message.
    pub fn may_contain(&self, string: KnownString) -> bool {
        match self.known {
            Some(known) => known.contains(string),
            None => {
                memchr::memmem::find(self.text.as_bytes(), string.quoted().as_bytes()).is_some()
            }
        }
    }

    /// Wraps text that the caller built from pieces of JSON; it is not parsed again.
    pub fn of_built(text: String) -> Self {
        debug_assert!(serde_json::from_str::<&RawValue>(&text).is_ok(), "{text}");
        Self::from(ByteString::from(text))
    }

    /// Returns the text as it was received, on one line.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the bytes without copying them.
    pub fn bytes(&self) -> Bytes {
        self.text.as_bytes().clone()
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Returns true if the text is empty, which JSON never is.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }
}

impl From<Box<RawValue>> for Json {
    fn from(raw: Box<RawValue>) -> Self {
        let text: Box<str> = raw.into();
        Self::from(ByteString::from(String::from(text)))
    }
}

impl From<ByteString> for Json {
    fn from(text: ByteString) -> Self {
        let line = one_line(text.into_bytes());
        let text = ByteString::try_from(line).expect("one ASCII character replaced another");
        Self { text, known: None }
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Json {}

/// The JSON-RPC error of a response; `code` is text because real servers send strings and numbers
/// outside every integer type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtocolError {
    /// The code: a number or a string without its quotes; `none` if there was none.
    pub code: String,
    /// The message; the whole value if it does not have the structure of an error.
    pub message: String,
    /// JSON text, or a string without its quotes.
    pub data: Option<String>,
}

impl ProtocolError {
    /// Reads the `error` member of a response; a value of another structure becomes the message.
    pub fn read(raw: &RawValue) -> Self {
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

    /// Applies `rewrite` to each text of the error.
    #[must_use]
    pub fn map(self, rewrite: impl Fn(&str) -> String) -> Self {
        Self {
            code: rewrite(&self.code),
            message: rewrite(&self.message),
            data: self.data.map(|data| rewrite(&data)),
        }
    }

    /// Returns the code, message and `data` for forwarding: a code that is not a number becomes the
    /// code of an internal error, and `data` becomes valid JSON.
    pub fn into_parts(self) -> (i64, String, Option<String>) {
        let own = i64::from(crate::frame::INTERNAL_ERROR);
        let raw = |text: String| match serde_json::from_str::<&RawValue>(&text) {
            Ok(_) => text,
            Err(_) => quote(&text),
        };
        let code = self.code.parse().unwrap_or(own);
        (code, self.message, self.data.map(raw))
    }

    /// Returns the error for a response that has neither a result nor an error.
    pub fn empty() -> Self {
        Self::unreadable("the response has neither a result nor an error")
    }

    fn unreadable(text: &str) -> Self {
        Self {
            code: "none".to_owned(),
            message: printable::first_chars(text, UNREADABLE_CHARS_MAX).to_owned(),
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

/// Validates JSON text that a caller built.
pub fn json(text: String) -> Result<Json, serde_json::Error> {
    RawValue::from_string(text).map(Json::from)
}
