//! A result cut to the room it may take, with nothing lost: what is left out is kept.

use std::borrow::Cow;

use fleet::Json;
use memchr::memmem;
use serde_json::{Value, value::RawValue};

use super::{
    Reply,
    fields::{Fields, text_of},
};
use crate::{results::ResultStore, tokens};

/// How much of a result a client is sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    pub(crate) max_tokens: u64,
    /// The client asked for everything.
    pub(crate) is_off: bool,
}

/// Tokens of the budget that the footer takes.
const FOOTER_TOKENS: usize = 90;

impl Budget {
    /// The result as the client gets it. Below the budget not one byte changes, except that
    /// `structuredContent` becomes text where the text does not say the same already.
    pub(crate) async fn fit(self, result: Json, store: &ResultStore) -> Reply {
        if self.passes(result.as_str()) {
            return Reply::of_server(result, false);
        }
        let answer = Answer::read(result.as_str());
        let is_error = answer.is_error();
        let whole = if answer.changed {
            answer.assemble()
        } else {
            result.clone()
        };
        if self.is_off || answer.tokens() <= self.max() {
            return Reply::of_server(whole, is_error);
        }
        let kept = store.keep(&whole).await;
        Reply::of_server(answer.cut(self.max(), &kept, store.keep_hours()), is_error)
    }

    /// Whether a result of the usual form can go on as it is, without being read. What counts as
    /// tokens in the whole text is never less than what counts in its blocks.
    fn passes(self, result: &str) -> bool {
        let mentions = |key: &str| memmem::find(result.as_bytes(), key.as_bytes()).is_some();
        result.starts_with(r#"{"content":["#)
            && (self.is_off || tokens::estimate(result) <= self.max())
            && !mentions(r#""structuredContent""#)
            && !mentions(r#""isError""#)
    }

    fn max(self) -> usize {
        usize::try_from(self.max_tokens).unwrap_or(usize::MAX)
    }
}

/// A result, read once.
struct Answer<'a> {
    members: Fields<'a>,
    blocks: Vec<Block<'a>>,
    /// What the server sent as its content is no longer all that there is.
    changed: bool,
}

/// One block of a result's content.
struct Block<'a> {
    raw: Cow<'a, str>,
    /// Of a text block.
    text: Option<Cow<'a, str>>,
    /// What it costs a model. Images and audio do not count.
    tokens: usize,
}

impl<'a> Answer<'a> {
    /// Reads a result and turns `structuredContent` into text where the text blocks do not hold
    /// it already: some clients show it in place of the text, some beside it, some not at all.
    fn read(result: &'a str) -> Self {
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

    fn is_error(&self) -> bool {
        let flag = self.members.get("isError");
        flag.is_some_and(|flag| flag.get() == "true")
    }

    fn tokens(&self) -> usize {
        self.blocks.iter().map(|block| block.tokens).sum()
    }

    fn assemble(&self) -> Json {
        self.with_content(self.blocks.iter().map(|block| block.raw.as_ref()))
    }

    /// The result with other content, and without `structuredContent`.
    fn with_content<'b>(&self, blocks: impl Iterator<Item = &'b str>) -> Json {
        let mut text = String::from(r#"{"content":["#);
        for (at, block) in blocks.enumerate() {
            if at > 0 {
                text.push(',');
            }
            text.push_str(block);
        }
        text.push(']');
        let others = self.members.0.iter();
        for (key, value) in others.filter(|(key, _)| key != "content" && key != "structuredContent")
        {
            text.push_str(&format!(",{}:", Value::from(key.as_ref())));
            text.push_str(value.get());
        }
        text.push('}');
        Json::of_built(text)
    }

    /// Takes blocks in order while they fit; the first text that does not is cut, and text after
    /// it is left out. Images and audio pass.
    fn cut(&self, max_tokens: usize, kept: &Result<String, String>, keep_hours: u64) -> Json {
        let mut cutting = Cutting::new(max_tokens);
        for block in &self.blocks {
            if block.tokens <= cutting.room {
                cutting.take(block.raw.clone(), block.tokens);
            } else if let Some(text) = &block.text {
                cutting.cut_text(text);
            } else {
                cutting.room = 0;
            }
        }
        let footer = cutting.footer(self.tokens(), kept, keep_hours);
        let blocks = cutting.blocks.iter().map(AsRef::as_ref);
        self.with_content(blocks.chain([text_block(&footer).as_str()]))
    }
}

impl<'a> Block<'a> {
    fn read(raw: &'a str) -> Self {
        let members = Fields::of(raw);
        let kind = members.as_ref().and_then(|it| it.get("type"));
        let kind = kind.map(RawValue::get);
        let text = match kind {
            Some(r#""text""#) => members.and_then(|it| text_of(it.get("text")?)),
            _ => None,
        };
        let tokens = match (&text, kind) {
            (Some(text), _) => tokens::estimate(text),
            (None, Some(r#""image""# | r#""audio""#)) => 0,
            (None, _) => tokens::estimate(raw),
        };
        Self {
            raw: Cow::Borrowed(raw),
            text,
            tokens,
        }
    }

    fn of_text(text: String) -> Self {
        Self {
            raw: Cow::Owned(text_block(&text)),
            tokens: tokens::estimate(&text),
            text: Some(Cow::Owned(text)),
        }
    }

    /// Whether a text block is this JSON, or is what stands in its wrapper.
    fn says(&self, structured: &RawValue) -> bool {
        let Some(text) = &self.text else {
            return false;
        };
        is_same(text, structured) || sole_member(structured).is_some_and(|it| is_same(text, it))
    }
}

fn text_block(text: &str) -> String {
    let mut block = br#"{"type":"text","text":"#.to_vec();
    block.reserve(text.len() + text.len() / 8);
    serde_json::to_writer(&mut block, text).expect("a string is JSON");
    block.push(b'}');
    String::from_utf8(block).expect("JSON is UTF-8")
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

/// A cut under way: blocks taken so far, and what room is left.
struct Cutting<'a> {
    room: usize,
    kept_tokens: usize,
    blocks: Vec<Cow<'a, str>>,
    /// Of the block that was cut: how many of how many of what.
    counted: Option<Counted>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counted {
    kept: usize,
    whole: usize,
    unit: &'static str,
}

impl<'a> Cutting<'a> {
    fn new(max_tokens: usize) -> Self {
        Self {
            room: max_tokens.saturating_sub(FOOTER_TOKENS),
            kept_tokens: 0,
            blocks: Vec::new(),
            counted: None,
        }
    }

    fn take(&mut self, block: Cow<'a, str>, tokens: usize) {
        self.room -= tokens;
        self.kept_tokens += tokens;
        self.blocks.push(block);
    }

    fn cut_text(&mut self, text: &str) {
        let (part, counted) = head(text, self.room);
        if self.counted.is_none() {
            self.counted = Some(counted);
        }
        if !part.is_empty() {
            let tokens = tokens::estimate(&part).min(self.room);
            self.take(Cow::Owned(text_block(&part)), tokens);
        }
        self.room = 0;
    }

    fn footer(&self, whole: usize, kept: &Result<String, String>, keep_hours: u64) -> String {
        let tokens = format!("{} of {} tokens", grouped(self.kept_tokens), grouped(whole));
        let counted = self.counted.map(|it| {
            let (kept, whole) = (grouped(it.kept), grouped(it.whole));
            format!(", {kept} of {whole} {}", it.unit)
        });
        let counted = counted.unwrap_or_default();
        let rest = match kept {
            Ok(handle) => format!(
                "The whole is kept {keep_hours} hours: `proxy read {handle}` in a shell prints it"
            ),
            Err(why) => format!("The whole could not be kept: {why}"),
        };
        format!(
            "[cut: {tokens}{counted}. {rest}. To see more here, narrow the arguments, or put \
             \"max_tokens\" beside tool_input.]"
        )
    }
}

/// The beginning of a text: whole items of a JSON array, else whole lines, else whole words.
fn head(text: &str, room: usize) -> (String, Counted) {
    if let Some(cut) = head_of_array(text, room) {
        return cut;
    }
    let whole = text.lines().count();
    let mut kept = 0;
    let mut end = 0;
    let mut used = 0;
    for line in text.split_inclusive('\n') {
        used += tokens::estimate(line);
        if used > room {
            break;
        }
        end += line.len();
        kept += 1;
    }
    if kept > 0 {
        return (
            text[..end].to_owned(),
            Counted {
                kept,
                whole,
                unit: "lines",
            },
        );
    }
    let part = head_of_line(text, room);
    let counted = Counted {
        kept: part.chars().count(),
        whole: text.chars().count(),
        unit: "characters",
    };
    (part.to_owned(), counted)
}

fn head_of_array(text: &str, room: usize) -> Option<(String, Counted)> {
    if !text.trim_start().starts_with('[') {
        return None;
    }
    let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    let mut used = 1;
    let fits = |item: &&&RawValue| {
        used += tokens::estimate(item.get()) + 1;
        used <= room
    };
    let kept: Vec<&str> = items
        .iter()
        .take_while(fits)
        .map(|item| item.get())
        .collect();
    let counted = Counted {
        kept: kept.len(),
        whole: items.len(),
        unit: "items",
    };
    (!kept.is_empty()).then(|| (format!("[{}]", kept.join(",")), counted))
}

fn head_of_line(text: &str, room: usize) -> &str {
    let mut quarters = room * 4;
    let mut end = 0;
    for c in text.chars() {
        let cost = if c.is_ascii() { 1 } else { 4 };
        if cost > quarters {
            break;
        }
        quarters -= cost;
        end += c.len_utf8();
    }
    let part = &text[..end];
    // A word is not torn, unless it is longer than half of the part.
    match part.rfind(char::is_whitespace) {
        Some(space) if space > end / 2 => &part[..space],
        _ => part,
    }
}

/// `61200` as `61,200`.
pub(crate) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Answer, Budget, Counted, grouped, head};
    use crate::{config, front::Reply, results::ResultStore, tokens};

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

    #[test]
    fn a_text_is_cut_at_items_lines_or_words() {
        let items: Vec<Value> = (0..100)
            .map(|id| json!({"id": id, "name": "x".repeat(20)}))
            .collect();
        let (part, counted) = head(&json!(items).to_string(), 100);
        let kept: Vec<Value> = serde_json::from_str(&part).expect("whole items are JSON");
        assert_eq!(kept, items[..kept.len()]);
        assert_eq!(
            counted,
            Counted {
                kept: kept.len(),
                whole: 100,
                unit: "items"
            }
        );
        assert!(kept.len() > 5 && tokens::estimate(&part) <= 100);

        let lines = "one line of text\n".repeat(50);
        let (part, counted) = head(&lines, 20);
        assert_eq!(part, "one line of text\n".repeat(4));
        assert_eq!(
            counted,
            Counted {
                kept: 4,
                whole: 50,
                unit: "lines"
            }
        );

        let (part, counted) = head(&"word ".repeat(500), 5);
        assert_eq!(part, "word word word word");
        assert_eq!((counted.whole, counted.unit), (2_500, "characters"));
        let (part, _) = head(&"ü".repeat(100), 7);
        assert_eq!(part, "ü".repeat(7));
    }

    async fn fit(result: Value, max_tokens: u64) -> (Reply, ResultStore, tempfile::TempDir) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let limits = config::Results {
            max_tokens,
            keep_hours: 24,
            keep_mib: 1,
        };
        let store = ResultStore::new(folder.path(), &limits);
        let budget = Budget {
            max_tokens,
            is_off: false,
        };
        let json = fleet::json(result.to_string()).expect("a value is JSON");
        (budget.fit(json, &store).await, store, folder)
    }

    #[tokio::test]
    async fn what_is_cut_is_kept_whole_and_images_pass() {
        let image = json!({"type": "image", "data": "A".repeat(50_000), "mimeType": "image/png"});
        let text = "a line that says something\n".repeat(2_000);
        let result = json!({"content": [{"type": "text", "text": text}, image], "_meta": {"k": 1}});
        let (reply, store, _folder) = fit(result.clone(), 1_000).await;

        let sent: Value = serde_json::from_str(reply.json().as_str()).expect("a result");
        assert_eq!(sent["_meta"], json!({"k": 1}));
        assert_eq!(sent["content"][1], image);
        let footer = sent["content"][2]["text"].as_str().expect("a footer");
        assert!(
            footer.starts_with("[cut: 878 of 13,500 tokens, 130 of 2,000 lines."),
            "{footer}"
        );
        let handle = footer
            .split("proxy read ")
            .nth(1)
            .and_then(|rest| rest.split('`').next());
        let kept = store.read(handle.expect("a handle")).expect("kept");
        assert_eq!(serde_json::from_str::<Value>(&kept).expect("JSON"), result);
    }

    #[tokio::test]
    async fn below_the_budget_not_one_byte_changes() {
        let result =
            json!({"content": [{"type": "text", "text": "short", "annotations": {"z": 1}}]});
        let (reply, _, folder) = fit(result.clone(), 50).await;
        assert_eq!(reply.json().as_str(), result.to_string());
        assert!(!folder.path().join("results").exists());
    }

    #[test]
    fn numbers_are_grouped() {
        let shown: Vec<String> = [0, 999, 1_000, 61_200, 1_234_567].map(grouped).into();
        assert_eq!(shown, ["0", "999", "1,000", "61,200", "1,234,567"]);
    }
}
