//! A tool's result, read once: its blocks, and which of them are text.

use std::borrow::Cow;

use excerpt::tokens::Counter;
use jsonrpc::{Fields, Json, text_of};
use serde_json::{Value, value::RawValue};

use super::imitation::notice;

/// A result, read once.
pub(crate) struct Answer<'a> {
    /// Beside its blocks and `structuredContent`, which is a block by now.
    others: Vec<Member<'a>>,
    is_error: bool,
    pub(super) blocks: Vec<Block<'a>>,
    /// What the server sent as its content is no longer all that there is.
    pub(super) changed: bool,
}

/// A member of a result beside its content: `_meta`, and whatever else there is.
struct Member<'a> {
    key: Cow<'a, str>,
    value: &'a RawValue,
    /// It is cut like a text where the result is.
    is_long: bool,
}

/// What the members beside the content of a result that is cut may cost, in tokens; what goes
/// beyond it is cut as well. A client's own bookkeeping needs less.
pub(crate) const OTHERS_TOKENS_MAX: usize = 100;

/// What may stand around the text of a block, in bytes, before the block is taken for JSON:
/// `annotations` of the protocol and an address need less.
const WRAPPER_BYTES_MAX: usize = 512;

/// The most that images, sounds and short links of a result that is cut may cost beside their data: a
/// `PASSING_SHARE`th of the budget. Those beyond it are taken for JSON.
const PASSING_SHARE: usize = 4;

/// The longest name and address of a link that stays one where its description is cut, in bytes.
const LINK_BYTES_MAX: usize = 256;

/// One block of a result's content: all of it, or what stands before and behind its text.
pub(crate) enum Block<'a> {
    /// An image, a sound or a short link; data does not count, what stands beside it does.
    Passing { raw: &'a str, beside: String },
    /// A longer link, which is JSON to us and stays a link where it is cut.
    Link(&'a str),
    Text {
        before: Cow<'a, str>,
        text: Cow<'a, str>,
        after: Cow<'a, str>,
    },
    /// Any other, which is JSON to us.
    Other(&'a str),
}

impl<'a> Answer<'a> {
    /// Reads a result and turns `structuredContent` into text where the text blocks do not hold
    /// it already: some clients show it in place of the text, some beside it, some not at all.
    pub(crate) fn read(result: &'a str) -> Self {
        let members = Fields::of(result).unwrap_or(Fields(Vec::new()));
        let content = members.content();
        let structured = members.filled("structuredContent");
        let has_content = content.is_some();
        let blocks = content.unwrap_or_default().into_iter();
        let mut blocks: Vec<Block<'_>> = blocks.map(|raw| Block::read(raw.get())).collect();
        match structured {
            Some(structured) if !blocks.iter().any(|block| block.says(structured)) => {
                blocks.push(Block::of_text(tool::minified(structured.get())));
            }
            None if !has_content => blocks.push(Block::of_text(result.to_owned())),
            _ => {}
        }
        let flag = members.get("isError");
        let is_other = |key: &str| key != "content" && key != "structuredContent";
        let others = members.0.into_iter().filter(|(key, _)| is_other(key));
        let member = |(key, value)| Member {
            key,
            value,
            is_long: false,
        };
        Self {
            others: others.map(member).collect(),
            is_error: flag.is_some_and(|flag| flag.get() == "true"),
            blocks,
            changed: structured.is_some() || !has_content,
        }
    }

    pub(crate) fn is_error(&self) -> bool {
        self.is_error
    }

    /// What it costs: everything but data of images and sounds, and what every block has.
    pub(crate) fn tokens(&self) -> usize {
        Counter::with(|counter| self.counted().map(|text| counter.count(&text)).sum())
    }

    /// All that counts.
    pub(super) fn counted(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let blocks = self.blocks.iter().flat_map(Block::counted);
        let others = self.others.iter().filter(|it| it.key != "isError");
        blocks.chain(others.map(|it| Cow::Owned(it.text())))
    }

    /// Says behind its blocks whose lines they are that look like ours.
    pub(super) fn mark_imitations(&mut self) {
        let notice = self.blocks.iter().filter_map(Block::text).find_map(notice);
        self.changed |= notice.is_some();
        self.blocks.extend(notice.map(Block::of_text));
    }

    /// Gets ready to be cut: what has no text and is too long to pass is a text from here on.
    pub(super) fn settle(&mut self, max_tokens: usize) {
        Counter::with(|counter| {
            let mut left = OTHERS_TOKENS_MAX;
            for member in self.others.iter_mut().filter(|it| it.key != "isError") {
                let cost = counter.count_to(&member.text(), left);
                member.is_long = cost > left;
                if !member.is_long {
                    left -= cost;
                }
            }
            let mut left = max_tokens / PASSING_SHARE;
            for block in &mut self.blocks {
                let Block::Passing { raw, beside } = block else {
                    continue;
                };
                let cost = counter.count_to(beside, left);
                if cost > left {
                    let is_link = *raw == beside.as_str();
                    *block = if is_link {
                        Block::Link(raw)
                    } else {
                        Block::Other(raw)
                    };
                } else {
                    left -= cost;
                }
            }
        });
    }

    /// What may be cut, in its order: the texts of blocks, then members beside them.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        let blocks = self.blocks.iter().filter_map(Block::text);
        blocks.chain(self.long_members())
    }

    /// Members beside the content that are cut.
    pub(super) fn long_members(&self) -> impl Iterator<Item = &str> {
        let long = self.others.iter().filter(|it| it.is_long);
        long.map(|it| it.value.get())
    }

    /// For each of the texts, whether it is a piece of the result's own JSON.
    pub(super) fn are_json(&self) -> impl Iterator<Item = bool> {
        let blocks = self.blocks.iter().filter(|it| it.text().is_some());
        let blocks = blocks.map(|it| !matches!(it, Block::Text { .. }));
        blocks.chain(self.long_members().map(|_| true))
    }

    /// The result as it goes on where it is not cut.
    pub(super) fn assemble(&self) -> Json {
        let blocks = self.blocks.iter().map(Block::whole);
        with_content(blocks, &self.rest())
    }

    /// What stands around the texts: one piece more than there are.
    pub(super) fn frame(&self) -> Vec<String> {
        let (mut frame, mut piece) = (Vec::new(), String::from(CONTENT));
        for (at, block) in self.blocks.iter().enumerate() {
            if at > 0 {
                piece.push(',');
            }
            match block {
                Block::Passing { raw, .. } => piece.push_str(raw),
                Block::Text { before, after, .. } => {
                    piece.push_str(before);
                    frame.push(std::mem::replace(&mut piece, after.to_string()));
                }
                Block::Other(_) | Block::Link(_) => frame.push(std::mem::take(&mut piece)),
            }
        }
        piece.push_str(&self.rest());
        piece.pop();
        for member in self.others.iter().filter(|it| it.is_long) {
            piece.push_str(&format!(",{}:", quoted(&member.key)));
            frame.push(std::mem::take(&mut piece));
        }
        piece.push('}');
        frame.push(piece);
        frame
    }

    /// What follows the blocks, but for members that are cut.
    pub(super) fn rest(&self) -> String {
        let short = self.others.iter().filter(|it| !it.is_long);
        let short = short.map(|it| format!(",{}", it.text()));
        format!("]{}}}", short.collect::<String>())
    }
}

/// A result with these blocks, and what follows them.
pub(super) fn with_content<T: AsRef<str>>(blocks: impl Iterator<Item = T>, rest: &str) -> Json {
    let mut text = String::from(CONTENT);
    for (at, block) in blocks.enumerate() {
        if at > 0 {
            text.push(',');
        }
        text.push_str(block.as_ref());
    }
    text.push_str(rest);
    Json::of_built(text)
}

const CONTENT: &str = r#"{"content":["#;

impl Member<'_> {
    fn text(&self) -> String {
        format!("{}:{}", quoted(&self.key), self.value.get())
    }
}

impl<'a> Block<'a> {
    fn read(raw: &'a str) -> Self {
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
            (Some(r#""resource_link""#), _) => return Self::Link(raw),
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

    /// What of the block counts, and may be cut.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Passing { .. } => None,
            Self::Text { text, .. } => Some(text),
            Self::Other(raw) | Self::Link(raw) => Some(raw),
        }
    }

    /// What of the block counts.
    fn counted(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let around = match self {
            Self::Passing { beside, .. } => [beside.as_str(), ""],
            Self::Text { before, after, .. } if !is_plain(before, after) => [&**before, after],
            _ => ["", ""],
        };
        let around = around.into_iter().filter(|text| !text.is_empty());
        self.text().into_iter().chain(around).map(Cow::Borrowed)
    }

    /// What stands around its text, in tokens.
    pub(super) fn wrapper_tokens(&self, counter: &mut Counter) -> usize {
        match self {
            Self::Text { before, after, .. } if !is_plain(before, after) => {
                counter.count(before) + counter.count(after)
            }
            _ => 0,
        }
    }

    pub(super) fn whole(&self) -> Cow<'_, str> {
        match self {
            Self::Passing { raw, .. } | Self::Other(raw) | Self::Link(raw) => Cow::Borrowed(raw),
            Self::Text { text, .. } => Cow::Owned(self.with(text)),
        }
    }

    /// The block with another text. What was no text becomes one.
    pub(super) fn with(&self, text: &str) -> String {
        match self {
            Self::Text { before, after, .. } => format!("{before}{}{after}", quoted(text)),
            Self::Passing { .. } | Self::Other(_) | Self::Link(_) => text_block(text),
        }
    }

    /// A link without all that may be long: still one that a client can follow.
    pub(super) fn short_link(&self) -> Option<String> {
        let Self::Link(raw) = self else {
            return None;
        };
        let fields = Fields::of(raw)?;
        let short = |key: &str| {
            let value = fields.get(key)?.get();
            let is_short = value.starts_with('"') && value.len() <= LINK_BYTES_MAX;
            is_short.then(|| format!(r#""{key}":{value}"#))
        };
        let (uri, name) = (short("uri")?, short("name")?);
        let kind = short("mimeType").map(|kind| format!(",{kind}"));
        let kind = kind.unwrap_or_default();
        Some(format!(r#"{{"type":"resource_link",{uri},{name}{kind}}}"#))
    }

    /// Whether a text block is this JSON, or is what stands in its wrapper.
    fn says(&self, structured: &RawValue) -> bool {
        let Self::Text { text, .. } = self else {
            return false;
        };
        is_same(text, structured) || sole_member(structured).is_some_and(|it| is_same(text, it))
    }
}

const PLAIN_BEFORE: &str = r#"{"type":"text","text":"#;
const PLAIN_AFTER: &str = "}";

/// What every block of text has does not count.
fn is_plain(before: &str, after: &str) -> bool {
    let is_type = [PLAIN_BEFORE, r#"{"text":"#].contains(&before);
    is_type && [PLAIN_AFTER, r#","type":"text"}"#].contains(&after)
}

/// An image or a sound without its data; none where the data is none, and so may say anything.
fn beside_data(members: &Fields<'_>) -> Option<String> {
    let data = text_of(members.get("data")?)?;
    let is_base64 =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=');
    let mut bytes = data.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n'));
    let beside = members.0.iter().filter(|(key, _)| key != "data");
    let beside = beside.map(|(key, value)| format!("{}:{}", quoted(key), value.get()));
    bytes
        .all(is_base64)
        .then(|| beside.collect::<Vec<_>>().join(","))
}

/// A text as JSON has it.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = Vec::with_capacity(text.len() + text.len() / 8);
    serde_json::to_writer(&mut quoted, text).expect("a string is JSON");
    String::from_utf8(quoted).expect("JSON is UTF-8")
}

pub(crate) fn text_block(text: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, quoted(text))
}

/// Whether a text is this JSON, or is the very text that it holds.
fn is_same(text: &str, json: &RawValue) -> bool {
    let text = text.trim();
    if text == json.get() || text_of(json).is_some_and(|held| held.trim() == text) {
        return true;
    }
    // Only a text that begins as the JSON does can be the same in another layout.
    if text.as_bytes().first() != json.get().as_bytes().first() {
        return false;
    }
    if tool::minified(text) == tool::minified(json.get()) {
        return true;
    }
    let parse = |text: &str| serde_json::from_str::<Value>(text).ok();
    parse(text).is_some_and(|said| Some(said) == parse(json.get()))
}

/// What stands in a wrapper: servers give `{"result": ...}` or `{"content": ...}` beside a text
/// that says the same.
fn sole_member(structured: &RawValue) -> Option<&RawValue> {
    match Fields::of(structured.get())?.0.as_slice() {
        [(_, value)] => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::Answer;

    #[track_caller]
    fn check_settled(result: &str, expected: &str) {
        let answer = Answer::read(result);
        let settled = answer.assemble();
        let settled = if answer.changed {
            settled.as_str()
        } else {
            result
        };
        assert_eq!(settled, expected);
    }

    #[test]
    fn structured_content_becomes_text_once() {
        let untouched = r#"{"content":[{"type":"text","text":"a","x":1}],"isError":false,"y":2}"#;
        check_settled(untouched, untouched);
        check_settled(
            r#"{"content":[{"type":"text","text":"{\n \"a\": 1}"}],"structuredContent":{"a":1},"_meta":{"k":1}}"#,
            r#"{"content":[{"type":"text","text":"{\n \"a\": 1}"}],"_meta":{"k":1}}"#,
        );
        check_settled(
            r#"{"content":[],"structuredContent":{"a": 1}}"#,
            r#"{"content":[{"type":"text","text":"{\"a\":1}"}]}"#,
        );
        check_settled(
            r#"{"content":[{"type":"text","text":"one"}],"structuredContent":{"a":1}}"#,
            r#"{"content":[{"type":"text","text":"one"},{"type":"text","text":"{\"a\":1}"}]}"#,
        );
        check_settled(
            r#"{"content":[{"type":"text","text":"a\nb"}],"structuredContent":{"result":"a\nb"}}"#,
            r#"{"content":[{"type":"text","text":"a\nb"}]}"#,
        );
        check_settled(
            r#"{"odd":1}"#,
            r#"{"content":[{"type":"text","text":"{\"odd\":1}"}],"odd":1}"#,
        );
        check_settled("7", r#"{"content":[{"type":"text","text":"7"}]}"#);
    }
}
