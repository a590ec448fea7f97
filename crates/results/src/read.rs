//! `proxy/read_result`: reads further parts of a result that was cut.

mod grep;
mod helper;
mod limits;
mod note;
mod part;
mod range;
mod request;
mod room;
mod select;

use std::{io, time::Duration};

use excerpt::TextKind;
use helper::{ask, query::HelperQuery};
use jsonrpc::Json;
use tool::ClientId;

use crate::{
    fit::{
        BUDGET_MIN, Budget, Fitted, Origin, PartOfWhole, READ_NOTE_TOKENS, fit, notice, text_block,
    },
    store::{KeptResult, ResultStore},
};

pub use helper::answer_query;
pub use limits::LIMIT_DEFAULT;
pub use request::{Output, ReadError, ReadOutcome, ReadRequest, ReadTexts, Unit};

/// The terms of a call, besides its arguments.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// The tokens of the answer; `None`: the budget of the first answer.
    pub max_tokens: Option<u64>,
    /// True to return everything at once.
    pub raw: bool,
    /// The time limit of the request, including the wait for its turn.
    pub limit: Duration,
}

/// Reads on in a kept result of this client (a person may read any), and returns an answer within
/// the terms. Work that an untrusted pattern or untrusted data could make slow runs in a process of
/// its own.
pub async fn answer(
    request: ReadRequest,
    terms: Terms,
    client: Option<&ClientId>,
    store: &ResultStore,
) -> Result<Fitted, ReadError> {
    let opened = store.open(&request.handle, client).await;
    let kept = opened.map_err(|error| ReadError::Handle(request.handle.clone(), error))?;
    let asked = terms.max_tokens.and_then(|it| usize::try_from(it).ok());
    let max_tokens = asked.unwrap_or(kept.head.max_tokens).max(BUDGET_MIN);
    let room = if terms.raw {
        usize::MAX
    } else {
        max_tokens - READ_NOTE_TOKENS
    };
    let part = PartOfWhole {
        handle: Some(request.handle.clone()),
        total_tokens: kept.count_tokens(),
        total_items: Some(kept.head.items),
        part: match request.kind() {
            Ok(None | Some("part")) => Some(request.part.unwrap_or(1)),
            _ => None,
        },
        parts: kept.count_parts(),
        content_type: kept.head.texts.first().map(|text| text.kind.media_type()),
        is_read_on: true,
        ..PartOfWhole::default()
    };
    match read(request, kept, Output { room }, store, terms.limit).await? {
        ReadOutcome::Texts(reading) => Ok(of_reading(&reading, part)),
        ReadOutcome::Value(value) => {
            let budget = Budget {
                is_off: terms.raw,
                ..Budget::new(u64::try_from(max_tokens).unwrap_or(u64::MAX))
            };
            let origin = Origin {
                client: client.cloned(),
                reads_on: true,
            };
            let result = Json::of_built(format!(r#"{{"content":[{}]}}"#, text_block(&value)));
            Ok(fit(result, budget, origin, store).await)
        }
    }
}

fn of_reading(reading: &ReadTexts, part: PartOfWhole) -> Fitted {
    let is_json = part.content_type == Some(TextKind::Json.media_type());
    let lines = reading.texts.iter().map(|text| excerpt::count_lines(text));
    let part = PartOfWhole {
        items: (!is_json).then(|| lines.sum()),
        ..part
    };
    let mut blocks: Vec<String> = reading.texts.iter().map(|it| text_block(it)).collect();
    let notice = reading.texts.iter().find_map(|text| notice(text));
    blocks.extend(notice.as_deref().map(text_block));
    blocks.push(text_block(&reading.note));
    Fitted {
        part: Some(Box::new(part)),
        ..Fitted::of_blocks(&blocks)
    }
}

/// Reads the requested part, as far as it fits. Takes at most `limit` if it needs a process.
pub async fn read(
    request: ReadRequest,
    kept: KeptResult,
    output: Output,
    store: &ResultStore,
    limit: Duration,
) -> Result<ReadOutcome, ReadError> {
    let kind = request
        .kind()
        .map_err(|why| ReadError::Argument("handle", why))?;
    let argument = |argument: &Option<String>| argument.clone().unwrap_or_default();
    let reading = match kind {
        Some("select") => {
            let query = HelperQuery::Select(argument(&request.select));
            let value = ask(query, &kept, store, limit).await?;
            return Ok(ReadOutcome::Value(value));
        }
        Some("grep") => {
            let query = grep::query(&request, &argument(&request.grep), output)?;
            let matches = ask(HelperQuery::Grep(query), &kept, store, limit).await?;
            off_loop(move || Ok(grep::reading(&request, &matches, output))).await?
        }
        Some("offset") => off_loop(move || range::read(&request, kept, output)).await?,
        _ => off_loop(move || part::read(&request, kept, output)).await?,
    };
    Ok(ReadOutcome::Texts(reading))
}

/// Reads and counts off the event loop. The work is proportional to its bytes.
async fn off_loop(
    work: impl FnOnce() -> Result<ReadTexts, ReadError> + Send + 'static,
) -> Result<ReadTexts, ReadError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| io::Error::other(error.to_string()))?
}
