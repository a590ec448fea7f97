//! A result cut to the room it may take, with nothing lost: what is left out is kept.

use std::borrow::Cow;

use fleet::Json;
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
        let result = settle(result);
        let is_error = is_error(&result);
        if self.is_off || self.holds(&result) {
            return Reply::of_server(result, is_error);
        }
        let kept = store.keep(&result).await;
        let cut = Cutting::new(self.max_tokens).cut(result.as_str());
        let footer = footer(&cut, &kept, store);
        let json = cut.assemble(&footer, result.as_str());
        Reply::of_server(json, is_error)
    }

    fn holds(self, result: &Json) -> bool {
        let max = usize::try_from(self.max_tokens).unwrap_or(usize::MAX);
        // A token is a byte at the least.
        result.len() <= max || text_tokens(result.as_str()) <= max
    }
}

fn is_error(result: &Json) -> bool {
    let fields = Fields::of(result.as_str());
    fields
        .and_then(|fields| Some(fields.get("isError")?.get() == "true"))
        .unwrap_or(false)
}

/// Turns `structuredContent` into text where the text blocks do not hold it already: some clients
/// show it in place of the text, some beside it, some not at all.
fn settle(result: Json) -> Json {
    let Some(fields) = Fields::of(result.as_str()) else {
        return with_content(&Fields(Vec::new()), &[text_block(result.as_str())]);
    };
    let content = fields.content();
    let Some(structured) = fields.filled("structuredContent") else {
        return match content {
            Some(_) => result,
            None => with_content(&fields, &[text_block(result.as_str())]),
        };
    };
    let mut blocks: Vec<String> = content
        .unwrap_or_default()
        .iter()
        .map(|raw| raw.get().to_owned())
        .collect();
    let is_told = blocks.iter().any(|block| says(block, structured));
    if !is_told {
        blocks.push(text_block(&tool::minified(structured.get())));
    }
    with_content(&fields, &blocks)
}

/// The result with other content, and without `structuredContent`.
fn with_content(fields: &Fields<'_>, blocks: &[String]) -> Json {
    let mut members = vec![format!(r#""content":[{}]"#, blocks.join(","))];
    let others = fields
        .0
        .iter()
        .filter(|(key, _)| key != "content" && key != "structuredContent");
    members.extend(others.map(|(key, value)| format!("{}:{value}", Value::from(key.as_ref()))));
    fleet::json(format!("{{{}}}", members.join(","))).expect("put together from JSON texts")
}

fn text_block(text: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, Value::from(text))
}

/// Whether a text block is the same JSON.
fn says(block: &str, structured: &RawValue) -> bool {
    let Some(text) = Fields::of(block).and_then(|block| block_text(&block)) else {
        return false;
    };
    is_same(&text, structured) || sole_member(structured).is_some_and(|it| is_same(&text, it))
}

/// Whether a text is this JSON, or is the very text that it holds.
fn is_same(text: &str, json: &RawValue) -> bool {
    if text_of(json).is_some_and(|held| held == text) {
        return true;
    }
    if tool::minified(text.trim()) == tool::minified(json.get()) {
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

fn block_text<'a>(block: &Fields<'a>) -> Option<Cow<'a, str>> {
    let is_text = block
        .get("type")
        .is_some_and(|kind| kind.get() == r#""text""#);
    block.get("text").filter(|_| is_text).and_then(text_of)
}

/// Tokens of everything in the content that a model reads as text. Images and audio do not
/// count.
fn text_tokens(result: &str) -> usize {
    let blocks = Fields::of(result)
        .and_then(|fields| fields.content())
        .unwrap_or_default();
    blocks.iter().map(|raw| block_tokens(raw.get())).sum()
}

fn block_tokens(raw: &str) -> usize {
    let Some(block) = Fields::of(raw) else {
        return tokens::estimate(raw);
    };
    match (block_text(&block), block.get("type").map(RawValue::get)) {
        (Some(text), _) => tokens::estimate(&text),
        (None, Some(r#""image""# | r#""audio""#)) => 0,
        (None, _) => tokens::estimate(raw),
    }
}

/// A cut under way: blocks taken so far, and what room is left.
struct Cutting {
    room: usize,
    whole_tokens: usize,
    kept_tokens: usize,
    blocks: Vec<String>,
    /// Of the block that was cut: how many of how many of what.
    counted: Option<Counted>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counted {
    kept: usize,
    whole: usize,
    unit: &'static str,
}

impl Cutting {
    fn new(max_tokens: u64) -> Self {
        let max = usize::try_from(max_tokens).unwrap_or(usize::MAX);
        Self {
            room: max.saturating_sub(FOOTER_TOKENS),
            whole_tokens: 0,
            kept_tokens: 0,
            blocks: Vec::new(),
            counted: None,
        }
    }

    /// Takes blocks in order while they fit; the first text that does not is cut, and text after
    /// it is left out. Images and audio pass.
    fn cut(mut self, result: &str) -> Self {
        let blocks = Fields::of(result)
            .and_then(|fields| fields.content())
            .unwrap_or_default();
        for raw in blocks {
            let tokens = block_tokens(raw.get());
            self.whole_tokens += tokens;
            if tokens <= self.room {
                self.take(raw.get().to_owned(), tokens);
            } else if let Some(text) = Fields::of(raw.get()).and_then(|block| block_text(&block)) {
                self.cut_text(&text);
            } else {
                self.room = 0;
            }
        }
        self
    }

    fn take(&mut self, block: String, tokens: usize) {
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
            self.take(text_block(&part), tokens);
        }
        self.room = 0;
    }

    fn assemble(self, footer: &str, result: &str) -> Json {
        let mut blocks = self.blocks;
        blocks.push(text_block(footer));
        let fields = Fields::of(result).unwrap_or(Fields(Vec::new()));
        with_content(&fields, &blocks)
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

fn footer(cut: &Cutting, kept: &Result<String, String>, store: &ResultStore) -> String {
    let tokens = format!(
        "{} of {} tokens",
        grouped(cut.kept_tokens),
        grouped(cut.whole_tokens)
    );
    let counted = cut.counted.map(|it| {
        format!(
            ", {} of {} {}",
            grouped(it.kept),
            grouped(it.whole),
            it.unit
        )
    });
    let counted = counted.unwrap_or_default();
    let rest = match kept {
        Ok(handle) => format!(
            "The whole is kept {} hours: `proxy read {handle}` in a shell prints it",
            store.keep_hours()
        ),
        Err(why) => format!("The whole could not be kept: {why}"),
    };
    format!(
        "[cut: {tokens}{counted}. {rest}. To see more here, narrow the arguments, or put \
         \"max_tokens\" beside tool_input.]"
    )
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

    use super::{Budget, Counted, grouped, head, settle};
    use crate::{config, front::Reply, results::ResultStore, tokens};

    #[track_caller]
    fn check_settled(result: &str, expected: &str) {
        let json = fleet::json(result.to_owned()).expect("the case is JSON");
        assert_eq!(settle(json).as_str(), expected);
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
