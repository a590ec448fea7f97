//! `proxy/read_result`: reads on in a result that was cut.

mod find;
mod grep;
mod helper;
mod range;
mod select;
mod value;

use std::{ops::Range, time::Duration};

use excerpt::{Kind, Piece, tokens::Counter};
use fleet::Ran;
use helper::Question;
use jsonrpc::Json;
use printable::grouped;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use tool::{ServerName, ToolRef};

use super::{
    Budget, Gateway, Origin, Reply, ToolError,
    budget::{BUDGET_MIN, READ_NOTE_TOKENS, notice},
    built_in::READ_RESULT,
    envelope::Options,
    text_block,
};
use crate::results::{Caller, HandleError, Kept, ResultStore};
pub use helper::work as work_as_helper;

const SIGNATURE: &str = "(handle: string, part?: integer, offset?: integer, limit?: integer, \
    unit?: \"lines\"|\"bytes\", grep?: string, pointer?: string, select?: string, find?: string)";

/// What a reader asks for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Wanted {
    pub handle: String,
    pub part: Option<usize>,
    pub offset: Option<i64>,
    pub limit: Option<usize>,
    pub unit: Unit,
    pub grep: Option<String>,
    pub pointer: Option<String>,
    pub select: Option<String>,
    pub find: Option<String>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
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
pub struct Reading {
    pub texts: Vec<String>,
    pub note: String,
}

/// What somebody gets who reads on.
#[derive(Debug)]
pub enum Found {
    Reading(Reading),
    /// A value of the result, which may be a long one itself.
    Value(String),
}

/// Where a reading goes: into an answer with so much room, or to a person who wants it all.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    /// In tokens.
    pub room: usize,
}

impl Output {
    /// What is read for it at most, in bytes; no token is longer but a run of blanks.
    fn bytes_max(self) -> usize {
        self.room
            .saturating_mul(TOKEN_BYTES_MAX)
            .min(READING_BYTES_MAX)
    }
}

const TOKEN_BYTES_MAX: usize = 64;

/// What one search answers to a person who wants it all, in bytes: as JSON it is still an answer.
const READING_BYTES_MAX: usize = helper::ANSWER_BYTES_MAX / 4;

/// How long a reading may take with the wait for its turn, where the call does not say: as long
/// as a call of any server does.
pub const LIMIT_DEFAULT: Duration = Duration::from_mins(1);

/// What a reading came to.
#[derive(Debug)]
pub enum ReadError {
    /// The argument, and what is wrong with it.
    Wanted(&'static str, String),
    Disk(std::io::Error),
    /// It was not done, or not even begun, within this time.
    TimedOut(Duration),
}

impl From<std::io::Error> for ReadError {
    fn from(error: std::io::Error) -> Self {
        Self::Disk(error)
    }
}

impl Gateway {
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
        let limit = options.limit().unwrap_or(LIMIT_DEFAULT);
        let found = read(wanted, kept, Output { room }, &self.results, limit).await;
        let reading = match found.map_err(|error| told(&error))? {
            Found::Reading(reading) => reading,
            Found::Value(value) => {
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
        };
        let mut blocks: Vec<String> = reading.texts.iter().map(|it| text_block(it)).collect();
        let notice = reading.texts.iter().find_map(|text| notice(text));
        blocks.extend(notice.as_deref().map(text_block));
        blocks.push(text_block(&reading.note));
        Ok(Reply::of_blocks(&blocks, false))
    }

    pub async fn open_kept(&self, handle: &str, caller: &Caller) -> Result<Kept, ToolError> {
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

pub fn told(error: &ReadError) -> ToolError {
    match error {
        ReadError::Wanted(path, why) => wrong(path, why),
        ReadError::TimedOut(limit) => ToolError::Timeout {
            tool: ToolRef::new(ServerName::built_in(), READ_RESULT),
            limit: *limit,
            ran: Ran::Maybe,
        },
        ReadError::Disk(error) => ToolError::Internal(format!("the kept result: {error}")),
    }
}

/// Reads what is wanted, as far as there is room. Whatever a stranger's pattern or data could
/// make slow is done by the helper.
pub async fn read(
    wanted: Wanted,
    kept: Kept,
    output: Output,
    store: &ResultStore,
    limit: Duration,
) -> Result<Found, ReadError> {
    let kind = wanted
        .kind()
        .map_err(|why| ReadError::Wanted("handle", why))?;
    let argument = |argument: &Option<String>| argument.clone().unwrap_or_default();
    let reading = match kind {
        Some("pointer") => {
            let question = Question::Pointer(argument(&wanted.pointer));
            let value = helper::ask(question, &kept, store, limit).await?;
            return Ok(Found::Value(value));
        }
        Some("select") => {
            let question = Question::Select(argument(&wanted.select));
            let value = helper::ask(question, &kept, store, limit).await?;
            return Ok(Found::Value(value));
        }
        Some("grep") => {
            let question = grep::question(&wanted, &argument(&wanted.grep), output)?;
            let matches = helper::ask(Question::Grep(question), &kept, store, limit).await?;
            off_loop(move || Ok(grep::reading(&wanted, &matches, output))).await?
        }
        Some("find") => {
            let question = find::question(&wanted, &argument(&wanted.find), output)?;
            let passages = helper::ask(Question::Find(question), &kept, store, limit).await?;
            off_loop(move || Ok(find::reading(&wanted, passages, output))).await?
        }
        Some("offset") => off_loop(move || range::read(&wanted, kept, output)).await?,
        _ => off_loop(move || part(&wanted, kept, output)).await?,
    };
    Ok(Found::Reading(reading))
}

/// Reads and counts where that may block. What is done here takes no longer than its bytes.
async fn off_loop(
    work: impl FnOnce() -> Result<Reading, ReadError> + Send + 'static,
) -> Result<Reading, ReadError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| std::io::Error::other(error.to_string()))?
}

fn part(wanted: &Wanted, mut kept: Kept, output: Output) -> Result<Reading, ReadError> {
    let number = wanted.part.unwrap_or(1);
    let parts = kept.head.parts.len();
    let Some(range) = kept.part(number) else {
        let why = format!("there are {parts} parts, from 1 on");
        return Err(ReadError::Wanted("part", why));
    };
    let (texts, end) = fitting(&mut kept, range.clone(), output.room)?;
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
    let columns = columns(&mut kept, range.start)?;
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
            let columns = excerpt::columns(&head);
            let cost = Counter::with(|counter| counter.count_to(columns, COLUMNS_TOKENS_MAX));
            if cost <= COLUMNS_TOKENS_MAX {
                return Ok(format!(
                    "; columns: {}",
                    printable::prose(columns).replace('\n', " ")
                ));
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
    let bytes_max = room.saturating_mul(TOKEN_BYTES_MAX);
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
        let cut = excerpt::first_cut(&Piece::plain(&text), left);
        if left >= cut.tokens {
            at += cut.end;
            fitting.push(text[..cut.end].to_owned());
        }
        break;
    }
    Ok((fitting, at))
}
