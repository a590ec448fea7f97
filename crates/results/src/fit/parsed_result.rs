//! A parsed result of a tool.

use std::borrow::Cow;

use excerpt::tokens::Counter;
use jsonrpc::{Fields, Json, KnownString, quote};
use serde_json::value::RawValue;

use super::{
    block::{Block, sole_member},
    imitation::notice,
};

/// Returns true if a result says that it is an error. A result is parsed only if it contains
/// `isError`.
pub fn is_error(result: &Json) -> bool {
    result.may_contain(KnownString::IsError)
        && Fields::of(result.as_str()).is_some_and(|members| says_error(&members))
}

fn says_error(members: &Fields<'_>) -> bool {
    let flag = members.get("isError");
    flag.is_some_and(|flag| flag.get() == "true")
}

pub(super) struct ParsedResult<'a> {
    /// Members beside the blocks and `structuredContent`, which was converted to a block.
    others: Vec<Member<'a>>,
    pub(super) is_error: bool,
    pub(super) blocks: Vec<Block<'a>>,
    /// True if the blocks are no longer just the content that the server sent.
    pub(super) changed: bool,
}

/// A member of a result beside its content: `_meta`, and any other.
struct Member<'a> {
    key: Cow<'a, str>,
    value: &'a RawValue,
    /// It is cut like a text if the result is cut.
    is_long: bool,
}

/// Returns true if structured content repeats the content inside a wrapper: some SDKs print it so.
fn repeats_content(structured: &RawValue, content: Option<&RawValue>) -> bool {
    let Some((inner, content)) = sole_member(structured).zip(content) else {
        return false;
    };
    tool::minified(inner.get()) == tool::minified(content.get())
}

/// The text for a model if a result has no content, for which clients show nothing at all.
const NO_CONTENT: &str = "[proxy: the tool answered with no content]";
const NOTHING_SAID: &str = "[proxy: the tool failed and did not say why]";

/// The largest cost of members beside the content of a cut result, in tokens; members beyond it are
/// cut as well. A client's own bookkeeping needs less.
pub(super) const OTHERS_TOKENS_MAX: usize = 100;

/// The largest cost of images, sounds and short links of a cut result beside their data: a
/// `PASSING_SHARE`th of the budget. Those beyond it are treated as JSON.
const PASSING_SHARE: usize = 4;

impl<'a> ParsedResult<'a> {
    /// Reads a result and turns `structuredContent` into text if the text blocks do not contain it
    /// already: some clients show it instead of the text, some beside it, some not at all.
    pub(super) fn read(result: &'a str) -> Self {
        let members = Fields::of(result).unwrap_or(Fields(Vec::new()));
        let content = members.content();
        let structured = members.filled("structuredContent");
        let has_content = content.is_some();
        let blocks = content.unwrap_or_default().into_iter();
        let mut blocks: Vec<Block<'_>> = blocks.map(|raw| Block::read(raw.get())).collect();
        match structured {
            Some(structured)
                if !blocks.iter().any(|block| block.says(structured))
                    && !repeats_content(structured, members.get("content")) =>
            {
                blocks.push(Block::of_text(tool::minified(structured.get())));
            }
            None if !has_content => blocks.push(Block::of_text(result.to_owned())),
            _ => {}
        }
        let is_error = says_error(&members);
        let is_other = |key: &str| key != "content" && key != "structuredContent";
        let others = members.0.into_iter().filter(|(key, _)| is_other(key));
        let member = |(key, value)| Member {
            key,
            value,
            is_long: false,
        };
        Self {
            others: others.map(member).collect(),
            is_error,
            blocks,
            changed: structured.is_some() || !has_content,
        }
    }

    /// Counts its tokens, without the data of images and sounds, and the JSON that every block has.
    pub(super) fn tokens(&self) -> usize {
        Counter::with(|counter| self.counted_texts().map(|text| counter.count(&text)).sum())
    }

    pub(super) fn counted_texts(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let blocks = self.blocks.iter().flat_map(Block::counted_texts);
        let others = self.others.iter().filter(|it| it.key != "isError");
        blocks.chain(others.map(|it| Cow::Owned(it.text())))
    }

    /// Adds a notice after the blocks if lines in them look like ours.
    pub(super) fn mark_imitations(&mut self) {
        let notice = self.blocks.iter().filter_map(Block::text).find_map(notice);
        self.changed |= notice.is_some();
        self.blocks.extend(notice.map(Block::of_text));
    }

    /// Adds a notice if there is no content: a model would read nothing at all.
    pub(super) fn fill_empty(&mut self) {
        if self.blocks.is_empty() {
            let says = if self.is_error {
                NOTHING_SAID
            } else {
                NO_CONTENT
            };
            self.blocks.push(Block::of_text(says.to_owned()));
            self.changed = true;
        }
    }

    /// Prepares the cut: blocks and members without text that are too long become texts.
    pub(super) fn prepare_cut(&mut self, max_tokens: usize) {
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
                    *block = Block::Other(raw);
                } else {
                    left -= cost;
                }
            }
        });
    }

    /// Returns the texts that may be cut, in order: the texts of blocks, then long members.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        let blocks = self.blocks.iter().filter_map(Block::text);
        blocks.chain(self.long_members())
    }

    /// Returns the members beside the content that are cut.
    pub(super) fn long_members(&self) -> impl Iterator<Item = &str> {
        let long = self.others.iter().filter(|it| it.is_long);
        long.map(|it| it.value.get())
    }

    /// Returns true for each text that is a part of the result's own JSON.
    pub(super) fn are_json(&self) -> impl Iterator<Item = bool> {
        let blocks = self.blocks.iter().filter(|it| it.text().is_some());
        let blocks = blocks.map(|it| !matches!(it, Block::Text { .. }));
        blocks.chain(self.long_members().map(|_| true))
    }

    /// Builds the result to send if it is not cut.
    pub(super) fn assemble(&self) -> Json {
        let blocks = self.blocks.iter().map(Block::whole);
        with_content(blocks, &self.rest())
    }

    /// Returns the JSON around the texts: one string more than there are texts.
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
                Block::Other(_) => frame.push(std::mem::take(&mut piece)),
            }
        }
        piece.push_str(&self.rest());
        piece.pop();
        for member in self.others.iter().filter(|it| it.is_long) {
            piece.push_str(&format!(",{}:", quote(&member.key)));
            frame.push(std::mem::take(&mut piece));
        }
        piece.push('}');
        frame.push(piece);
        frame
    }

    /// Returns the JSON after the blocks, without members that are cut.
    pub(super) fn rest(&self) -> String {
        let short = self.others.iter().filter(|it| !it.is_long);
        let short = short.map(|it| format!(",{}", it.text()));
        format!("]{}}}", short.collect::<String>())
    }
}

/// Builds a result from its blocks and the JSON after them.
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
        format!("{}:{}", quote(&self.key), self.value.get())
    }
}

#[cfg(test)]
mod tests {
    use super::ParsedResult;

    #[track_caller]
    fn check_settled(result: &str, expected: &str) {
        let answer = ParsedResult::read(result);
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
        let resource =
            r#"[{"type":"resource","resource":{"uri":"a:1","text":"{\"b\":2, \"a\":1}"}}]"#;
        let picture = r#"[{"type":"image","data":"QUJD","mimeType":"image/png"}]"#;
        for (content, repeated) in [
            (resource, r#"{"a":1,"b":2}"#),
            (resource, r#"{"result":{"a":1,"b":2}}"#),
            (r#"[{"type":"text","text":" one\n"}]"#, r#""one""#),
            (picture, &format!(r#"{{"content": {picture}}}"#)),
        ] {
            check_settled(
                &format!(r#"{{"content":{content},"structuredContent":{repeated}}}"#),
                &format!(r#"{{"content":{content}}}"#),
            );
        }
        let null = r#"{"content":[{"type":"text","text":"one"}],"structuredContent":null}"#;
        check_settled(null, null);
        check_settled(
            r#"{"odd":1}"#,
            r#"{"content":[{"type":"text","text":"{\"odd\":1}"}],"odd":1}"#,
        );
        check_settled("7", r#"{"content":[{"type":"text","text":"7"}]}"#);
    }
}
