//! One block of a result's content, and the part of it that is text.

use std::borrow::Cow;

use excerpt::tokens::Counter;
use jsonrpc::{Fields, quote, text_of};
use serde_json::{Value, value::RawValue};

/// The most bytes around the text of a block before the block is treated as JSON: `annotations` of
/// the protocol and an address need less.
const WRAPPER_BYTES_MAX: usize = 512;

/// The longest media type that is repeated, in characters.
const MEDIA_TYPE_CHARS_MAX: usize = 100;

/// One block of a result's content: all of it, or the JSON before and after its text.
pub(super) enum Block<'a> {
    /// An image, a sound or a short link; its data does not count, the members beside it do.
    Passing { raw: &'a str, beside: String },
    Text {
        before: Cow<'a, str>,
        text: Cow<'a, str>,
        after: Cow<'a, str>,
    },
    /// Any other block, which is treated as JSON.
    Other(&'a str),
}

impl<'a> Block<'a> {
    pub(super) fn read(raw: &'a str) -> Self {
        let members = Fields::of(raw);
        let kind = members.as_ref().and_then(|it| it.get("type"));
        let text = match (kind.map(RawValue::get), members) {
            (Some(r#""text""#), Some(members)) => members.get("text"),
            (Some(r#""resource""#), Some(members)) => {
                let inner = members.get("resource").map(RawValue::get);
                inner.and_then(Fields::of).and_then(|it| it.get("text"))
            }
            (Some(r#""image""# | r#""audio""#), Some(members)) => {
                let beside = beside_data(&members);
                return beside.map_or(Self::Other(raw), |beside| Self::Passing { raw, beside });
            }
            (Some(r#""resource_link""#), _) if raw.len() <= WRAPPER_BYTES_MAX => {
                let beside = raw.to_owned();
                return Self::Passing { raw, beside };
            }
            _ => None,
        };
        let is_wrapper = |quoted: &str| raw.len() - quoted.len() <= WRAPPER_BYTES_MAX;
        match text.and_then(|it| Some((it.get(), text_of(it)?))) {
            Some((quoted, text)) if is_wrapper(quoted) => {
                // The quoted text is a piece of the block, and so lies within it.
                let start = quoted.as_ptr() as usize - raw.as_ptr() as usize;
                Self::Text {
                    before: Cow::Borrowed(&raw[..start]),
                    text,
                    after: Cow::Borrowed(&raw[start + quoted.len()..]),
                }
            }
            _ => Self::Other(raw),
        }
    }

    pub(super) fn of_text(text: String) -> Self {
        Self::Text {
            before: Cow::Borrowed(PLAIN_BEFORE),
            text: Cow::Owned(text),
            after: Cow::Borrowed(PLAIN_AFTER),
        }
    }

    /// Returns the text that is counted and may be cut.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Passing { .. } => None,
            Self::Text { text, .. } => Some(text),
            Self::Other(raw) => Some(raw),
        }
    }

    /// Returns the media type of an image, a sound or a link, as its server says.
    pub(super) fn media_type(&self) -> Option<String> {
        let whole = self.whole();
        let kind = text_of(Fields::of(&whole)?.get("mimeType")?)?;
        Some(printable::one_line_of(&kind, MEDIA_TYPE_CHARS_MAX))
    }

    pub(super) fn counted_texts(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let around = self.around().into_iter().filter(|text| !text.is_empty());
        self.text().into_iter().chain(around).map(Cow::Borrowed)
    }

    /// Returns the JSON around its text, or beside its data, that is counted.
    fn around(&self) -> [&str; 2] {
        match self {
            Self::Passing { beside, .. } => [beside, ""],
            Self::Text { before, after, .. } if !is_plain(before, after) => [before, after],
            _ => ["", ""],
        }
    }

    /// Counts the JSON around its text, or beside its data, in tokens.
    pub(super) fn count_around(&self, counter: &mut Counter) -> usize {
        self.around().map(|text| counter.count(text)).iter().sum()
    }

    pub(super) fn whole(&self) -> Cow<'_, str> {
        match self {
            Self::Passing { raw, .. } | Self::Other(raw) => Cow::Borrowed(raw),
            Self::Text { text, .. } => Cow::Owned(self.with(text)),
        }
    }

    /// Replaces the text. A block without text becomes a text block.
    pub(super) fn with(&self, text: &str) -> String {
        match self {
            Self::Text { before, after, .. } => format!("{before}{}{after}", quote(text)),
            Self::Passing { .. } | Self::Other(_) => text_block(text),
        }
    }

    /// Returns the JSON before and after the text of a text block; `None` for an embedded resource,
    /// whose text must not be mixed with ours.
    pub(super) fn around_text(&self, keeps_wrapper: bool) -> Option<(String, String)> {
        match self {
            Self::Text { before, .. } if before.contains(r#""resource""#) => None,
            Self::Text { before, after, .. } if keeps_wrapper => {
                Some((before.to_string(), after.to_string()))
            }
            Self::Text { .. } => Some((PLAIN_BEFORE.to_owned(), PLAIN_AFTER.to_owned())),
            _ => None,
        }
    }

    /// Returns true if the text of a text block is this JSON, or is the value of its sole member.
    pub(super) fn says(&self, structured: &RawValue) -> bool {
        let Self::Text { text, .. } = self else {
            return false;
        };
        is_same(text, structured) || sole_member(structured).is_some_and(|it| is_same(text, it))
    }
}

const PLAIN_BEFORE: &str = r#"{"type":"text","text":"#;
const PLAIN_AFTER: &str = "}";

/// Returns true if the JSON around a text is the one that every text block has, which does not
/// count.
fn is_plain(before: &str, after: &str) -> bool {
    let is_type = [PLAIN_BEFORE, r#"{"text":"#].contains(&before);
    is_type && [PLAIN_AFTER, r#","type":"text"}"#].contains(&after)
}

/// Returns the members of an image or a sound without its data; `None` if the data is not base64, since
/// it could then contain any text.
fn beside_data(members: &Fields<'_>) -> Option<String> {
    let data = text_of(members.get("data")?)?;
    let is_base64 =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=');
    let mut bytes = data.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n'));
    let beside = members.0.iter().filter(|(key, _)| key != "data");
    let beside = beside.map(|(key, value)| format!("{}:{}", quote(key), value.get()));
    bytes
        .all(is_base64)
        .then(|| beside.collect::<Vec<_>>().join(","))
}

/// Makes a text block.
pub fn text_block(text: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, quote(text))
}

/// Returns true if a text equals this JSON, or the string that this JSON contains.
fn is_same(text: &str, json: &RawValue) -> bool {
    let text = text.trim();
    if text == json.get() || text_of(json).is_some_and(|held| held.trim() == text) {
        return true;
    }
    // Only a text with the same first byte can be the same JSON with other white space.
    if text.as_bytes().first() != json.get().as_bytes().first() {
        return false;
    }
    if tool::minified(text) == tool::minified(json.get()) {
        return true;
    }
    let parse = |text: &str| serde_json::from_str::<Value>(text).ok();
    parse(text).is_some_and(|said| Some(said) == parse(json.get()))
}

/// Returns the only member of a wrapper: servers send `{"result": ...}` or `{"content": ...}` beside a
/// text with the same content.
pub(super) fn sole_member(structured: &RawValue) -> Option<&RawValue> {
    match Fields::of(structured.get())?.0.as_slice() {
        [(_, value)] => Some(value),
        _ => None,
    }
}
