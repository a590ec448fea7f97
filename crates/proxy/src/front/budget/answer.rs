//! A tool's result, read once: its blocks, and which of them are text.

use std::borrow::Cow;

use fleet::Json;
use serde_json::{Value, value::RawValue};

use crate::{
    front::fields::{Fields, text_of},
    tokens::Counter,
};

/// A result, read once.
pub(crate) struct Answer<'a> {
    members: Fields<'a>,
    pub(super) blocks: Vec<Block<'a>>,
    /// What the server sent as its content is no longer all that there is.
    pub(super) changed: bool,
}

/// One block of a result's content: all of it, or what stands before and behind its text.
pub(crate) enum Block<'a> {
    /// An image, a sound, a link: it passes and does not count.
    Passing(Cow<'a, str>),
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
        Self {
            members,
            blocks,
            changed: structured.is_some() || !has_content,
        }
    }

    pub(crate) fn is_error(&self) -> bool {
        let flag = self.members.get("isError");
        flag.is_some_and(|flag| flag.get() == "true")
    }

    /// What its texts cost.
    pub(crate) fn tokens(&self) -> usize {
        let texts = self.blocks.iter().filter_map(Block::text);
        Counter::with(|counter| texts.map(|text| counter.count(text)).sum())
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
                Block::Passing(raw) => piece.push_str(raw),
                Block::Text { before, after, .. } => {
                    piece.push_str(before);
                    frame.push(std::mem::replace(&mut piece, after.to_string()));
                }
                Block::Other(_) => frame.push(std::mem::take(&mut piece)),
            }
        }
        piece.push_str(&self.rest());
        frame.push(piece);
        frame
    }

    /// What follows the blocks: all but the content, and `structuredContent`, which is a block
    /// by now.
    pub(super) fn rest(&self) -> String {
        let mut text = String::from("]");
        let others = self.members.0.iter();
        for (key, value) in others.filter(|(key, _)| key != "content" && key != "structuredContent")
        {
            text.push_str(&format!(",{}:", Value::from(key.as_ref())));
            text.push_str(value.get());
        }
        text.push('}');
        text
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
            (Some(r#""image""# | r#""audio""# | r#""resource_link""#), _) => {
                return Self::Passing(Cow::Borrowed(raw));
            }
            _ => None,
        };
        match text.and_then(|it| Some((it.get(), text_of(it)?))) {
            Some((quoted, text)) => {
                // The quoted text is a piece of the block, and so lies within it.
                let start = quoted.as_ptr() as usize - raw.as_ptr() as usize;
                Self::Text {
                    before: Cow::Borrowed(&raw[..start]),
                    text,
                    after: Cow::Borrowed(&raw[start + quoted.len()..]),
                }
            }
            None => Self::Other(raw),
        }
    }

    fn of_text(text: String) -> Self {
        Self::Text {
            before: Cow::Borrowed(r#"{"type":"text","text":"#),
            text: Cow::Owned(text),
            after: Cow::Borrowed("}"),
        }
    }

    /// What of the block counts, and may be cut.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Passing(_) => None,
            Self::Text { text, .. } => Some(text),
            Self::Other(raw) => Some(raw),
        }
    }

    pub(super) fn whole(&self) -> Cow<'_, str> {
        match self {
            Self::Passing(raw) => Cow::Borrowed(raw),
            Self::Other(raw) => Cow::Borrowed(raw),
            Self::Text { text, .. } => Cow::Owned(self.with(text)),
        }
    }

    /// The block with another text. What was no text becomes one.
    pub(super) fn with(&self, text: &str) -> String {
        match self {
            Self::Text { before, after, .. } => format!("{before}{}{after}", quoted(text)),
            Self::Passing(_) | Self::Other(_) => text_block(text),
        }
    }

    /// Whether a text block is this JSON, or is what stands in its wrapper.
    fn says(&self, structured: &RawValue) -> bool {
        let Self::Text { text, .. } = self else {
            return false;
        };
        is_same(text, structured) || sole_member(structured).is_some_and(|it| is_same(text, it))
    }
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
