//! `proxy/read_result`: reads on in a result that was cut.

mod find;
mod grep;
mod range;
mod select;
mod value;

use std::ops::Range;

use fleet::Json;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use super::{
    Budget, Front, Origin, Reply, ToolError,
    budget::{BUDGET_MIN, READ_NOTE_TOKENS},
    envelope::Options,
    grouped, text_block,
};
use crate::{
    cut::{self, Kind, Piece},
    results::{Caller, HandleError, Kept},
    tokens::Counter,
};

pub(crate) use select::work as select_work;

const SIGNATURE: &str = "(handle: string, part?: integer, offset?: integer, limit?: integer, \
    unit?: \"lines\"|\"bytes\", grep?: string, pointer?: string, select?: string, find?: string)";

/// What a reader asks for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Wanted {
    pub(crate) handle: String,
    pub(crate) part: Option<usize>,
    pub(crate) offset: Option<i64>,
    pub(crate) limit: Option<usize>,
    pub(crate) unit: Unit,
    pub(crate) grep: Option<String>,
    pub(crate) pointer: Option<String>,
    pub(crate) select: Option<String>,
    pub(crate) find: Option<String>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Unit {
    #[default]
    Lines,
    Bytes,
}

impl Wanted {
    /// What it asks for, by the name of the argument; none for the first part.
    fn kind(&self) -> Result<Option<&'static str>, String> {
        let kinds = [
            ("part", self.part.is_some()),
            ("grep", self.grep.is_some()),
            ("pointer", self.pointer.is_some()),
            ("select", self.select.is_some()),
            ("find", self.find.is_some()),
        ];
        let mut asked = kinds.iter().filter(|(_, is_asked)| *is_asked);
        let first = asked.next().map(|(kind, _)| *kind);
        if let (Some(first), Some((second, _))) = (first, asked.next()) {
            return Err(format!("say either {first} or {second}, not both"));
        }
        let has_range = self.offset.is_some() || self.limit.is_some();
        match first {
            None if has_range => Ok(Some("offset")),
            Some(kind @ ("part" | "pointer" | "select")) if has_range => {
                Err(format!("offset and limit do not go with {kind}"))
            }
            kind => Ok(kind),
        }
    }
}

/// What was read: pieces of the result as they are, and what there is to say of them.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    pub(crate) texts: Vec<String>,
    pub(crate) note: String,
}

/// Where a reading goes: into an answer with so much room, or to a person who wants it all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    /// In tokens.
    pub(crate) room: usize,
}

/// What a reading came to.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// The argument, and what is wrong with it.
    Wanted(&'static str, String),
    Disk(std::io::Error),
    /// It took longer than it may, or more memory.
    Bounds(String),
}

impl From<std::io::Error> for ReadError {
    fn from(error: std::io::Error) -> Self {
        Self::Disk(error)
    }
}

impl Front {
    pub(super) async fn read_result(
        &self,
        arguments: &RawValue,
        options: &Options,
        caller: &Caller,
    ) -> Result<Reply, ToolError> {
        let wanted: Wanted = serde_json::from_str(arguments.get())
            .map_err(|error| wrong("handle", &error.to_string()))?;
        let kept = self.open_kept(&wanted.handle, caller).await?;
        let asked = options.max_tokens.and_then(|it| usize::try_from(it).ok());
        let max_tokens = asked.unwrap_or(kept.head.max_tokens).max(BUDGET_MIN);
        let room = if options.raw {
            usize::MAX
        } else {
            max_tokens - READ_NOTE_TOKENS
        };
        let output = Output { room };
        if let Some(value) = read_value(&wanted, &kept).await? {
            let budget = Budget {
                is_off: options.raw,
                ..Budget::new(u64::try_from(max_tokens).unwrap_or(u64::MAX))
            };
            let origin = Origin {
                caller: caller.clone(),
                tool: "proxy/read_result".to_owned(),
            };
            let result = Json::of_built(format!(r#"{{"content":[{}]}}"#, text_block(&value)));
            return Ok(budget.fit(result, origin, &self.results).await);
        }
        let reading = tokio::task::spawn_blocking(move || read_kept(&wanted, kept, output));
        let reading = reading
            .await
            .map_err(|error| ToolError::Internal(error.to_string()))?;
        let reading = reading.map_err(|error| told(&error))?;
        let mut blocks: Vec<String> = reading.texts.iter().map(|it| text_block(it)).collect();
        blocks.push(text_block(&reading.note));
        Ok(Reply::of_blocks(&blocks, false))
    }

    pub(crate) async fn open_kept(&self, handle: &str, caller: &Caller) -> Result<Kept, ToolError> {
        let opened = self.results.open(handle, caller).await;
        opened.map_err(|error| expired(handle, error))
    }
}

fn expired(handle: &str, error: HandleError) -> ToolError {
    let handle = handle.chars().take(60).collect();
    let why = error.to_string();
    let tool = match error {
        HandleError::Gone { tool } | HandleError::Damaged { tool, .. } => tool,
        HandleError::NotWritten(_) => None,
    };
    ToolError::HandleExpired { handle, why, tool }
}

fn wrong(path: &str, why: &str) -> ToolError {
    ToolError::own_input("proxy/read_result", path, why, SIGNATURE)
}

pub(crate) fn told(error: &ReadError) -> ToolError {
    match error {
        ReadError::Wanted(path, why) => wrong(path, why),
        ReadError::Bounds(why) => wrong("select", why),
        ReadError::Disk(error) => ToolError::Internal(format!("the kept result: {error}")),
    }
}

/// The value that a `pointer` or a `select` asks for; none where neither is asked for.
pub(crate) async fn read_value(wanted: &Wanted, kept: &Kept) -> Result<Option<String>, ToolError> {
    let kind = wanted.kind().map_err(|why| wrong("handle", &why))?;
    match (kind, &wanted.pointer, &wanted.select) {
        (Some("pointer"), Some(pointer), _) => {
            let (path, pointer) = (kept.path.clone(), pointer.clone());
            let reading = tokio::task::spawn_blocking(move || value::read(&path, &pointer));
            let value = reading
                .await
                .map_err(|error| ToolError::Internal(error.to_string()))?;
            value.map(Some).map_err(|error| told(&error))
        }
        (Some("select"), _, Some(filter)) => {
            let selected = select::select(&kept.path, filter).await;
            selected.map(Some).map_err(|error| told(&error))
        }
        _ => Ok(None),
    }
}

/// Reads what is wanted, as far as there is room. Blocks.
pub(crate) fn read_kept(
    wanted: &Wanted,
    mut kept: Kept,
    output: Output,
) -> Result<Reading, ReadError> {
    let kind = wanted
        .kind()
        .map_err(|why| ReadError::Wanted("handle", why))?;
    match (kind, &wanted.grep, &wanted.find) {
        (Some("grep"), Some(pattern), _) => grep::read(wanted, pattern, &kept, output),
        (Some("find"), _, Some(words)) => find::read(wanted, words, &mut kept, output),
        (Some("offset"), ..) => range::read(wanted, &mut kept, output),
        _ => part(wanted, &mut kept, output),
    }
}

fn part(wanted: &Wanted, kept: &mut Kept, output: Output) -> Result<Reading, ReadError> {
    let number = wanted.part.unwrap_or(1);
    let parts = kept.head.parts.len();
    let Some(range) = kept.part(number) else {
        let why = format!("there are {parts} parts, from 1 on");
        return Err(ReadError::Wanted("part", why));
    };
    let (texts, end) = fitting(kept, range.clone(), output.room)?;
    let handle = &wanted.handle;
    let next = if end < range.end {
        json!({"handle": handle, "offset": end, "limit": range.end - end, "unit": "bytes"})
    } else if number < parts {
        json!({"handle": handle, "part": number + 1})
    } else {
        Value::Null
    };
    let is_whole = end == range.end;
    let what = if is_whole { "" } else { "the beginning of " };
    let what = format!("{what}part {} of {}", grouped(number), grouped(parts));
    let columns = columns(kept, range.start)?;
    let note = noted(&format!("{what}{columns}"), &next);
    Ok(Reading { texts, note })
}

/// The columns of the table that a part begins in the middle of.
fn columns(kept: &mut Kept, at: usize) -> Result<String, ReadError> {
    let mut start = 0;
    for text in kept.head.texts.clone() {
        let end = start + text.bytes;
        if at > start && at < end && matches!(text.kind, Kind::Table(_)) {
            let head = kept.read(start..end.min(start + COLUMNS_BYTES_MAX))?;
            let columns = cut::columns(&head);
            let cost = Counter::with(|counter| counter.count_to(columns, COLUMNS_TOKENS_MAX));
            if cost <= COLUMNS_TOKENS_MAX {
                return Ok(format!("; columns: {columns}"));
            }
        }
        start = end;
    }
    Ok(String::new())
}

/// The longest line of columns that is repeated.
const COLUMNS_BYTES_MAX: usize = 400;
const COLUMNS_TOKENS_MAX: usize = 45;

/// What was read, and the arguments of the next call.
fn noted(what: &str, next: &Value) -> String {
    if next.is_null() {
        return format!("[{what}: the end]");
    }
    let call = next.to_string();
    if call.len() > CALL_BYTES_MAX {
        return format!(
            "[{what}. More: the same with \"offset\":{}]",
            next["offset"]
        );
    }
    format!("[{what}. More: {call}]")
}

/// The longest call that a note repeats, in bytes: an expression may be of any length.
const CALL_BYTES_MAX: usize = 160;

/// As much of a range as there is room for, and where that ends.
fn fitting(
    kept: &mut Kept,
    range: Range<usize>,
    room: usize,
) -> Result<(Vec<String>, usize), ReadError> {
    // What is read is bounded; no token is longer than this but a run of blanks.
    let bytes_max = room.saturating_mul(64);
    let end = range.end.min(range.start.saturating_add(bytes_max));
    let texts = kept.read_by_text(range.start..end)?;
    if room == usize::MAX {
        return Ok((texts, end));
    }
    let (mut fitting, mut at, mut left) = (Vec::new(), range.start, room);
    for text in texts {
        let cost = Counter::with(|counter| counter.count_to(&text, left));
        if cost <= left {
            at += text.len();
            left -= cost;
            fitting.push(text);
            continue;
        }
        let cut = cut::first_cut(&Piece::plain(&text), left);
        if left >= cut.tokens {
            at += cut.end;
            fitting.push(text[..cut.end].to_owned());
        }
        break;
    }
    Ok((fitting, at))
}
