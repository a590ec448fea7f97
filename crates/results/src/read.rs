//! `proxy/read_result`: reads further parts of a result that was cut.

mod grep;
mod helper;
mod limits;
mod note;
mod part;
mod range;
mod room;
mod select;
mod wanted;

use std::{io, time::Duration};

use helper::{ask, question::Question};
use jsonrpc::Json;
use tool::ClientId;

use crate::{
    fit::{BUDGET_MIN, Budget, Fitted, Origin, READ_NOTE_TOKENS, fit, notice, text_block},
    store::{Kept, ResultStore},
};

pub use helper::answer_question;
pub use limits::LIMIT_DEFAULT;
pub use wanted::{Found, Output, ReadError, Reading, Unit, Wanted};

/// The tool name under which long values of a result are kept again.
const TOOL: &str = "proxy/read_result";

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
    wanted: Wanted,
    terms: Terms,
    client: Option<&ClientId>,
    store: &ResultStore,
) -> Result<Fitted, ReadError> {
    let opened = store.open(&wanted.handle, client).await;
    let kept = opened.map_err(|error| ReadError::Handle(wanted.handle.clone(), error))?;
    let asked = terms.max_tokens.and_then(|it| usize::try_from(it).ok());
    let max_tokens = asked.unwrap_or(kept.head.max_tokens).max(BUDGET_MIN);
    let room = if terms.raw {
        usize::MAX
    } else {
        max_tokens - READ_NOTE_TOKENS
    };
    match read(wanted, kept, Output { room }, store, terms.limit).await? {
        Found::Reading(reading) => Ok(of_reading(&reading)),
        Found::Value(value) => {
            let budget = Budget {
                is_off: terms.raw,
                ..Budget::new(u64::try_from(max_tokens).unwrap_or(u64::MAX))
            };
            let origin = Origin {
                client: client.cloned(),
                tool: TOOL.to_owned(),
            };
            let result = Json::of_built(format!(r#"{{"content":[{}]}}"#, text_block(&value)));
            Ok(fit(result, budget, origin, store).await)
        }
    }
}

fn of_reading(reading: &Reading) -> Fitted {
    let mut blocks: Vec<String> = reading.texts.iter().map(|it| text_block(it)).collect();
    let notice = reading.texts.iter().find_map(|text| notice(text));
    blocks.extend(notice.as_deref().map(text_block));
    blocks.push(text_block(&reading.note));
    Fitted::of_blocks(&blocks)
}

/// Reads the requested part, as far as it fits. Takes at most `limit` if it needs a process.
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
        Some("select") => {
            let question = Question::Select(argument(&wanted.select));
            let value = ask(question, &kept, store, limit).await?;
            return Ok(Found::Value(value));
        }
        Some("grep") => {
            let question = grep::question(&wanted, &argument(&wanted.grep), output)?;
            let matches = ask(Question::Grep(question), &kept, store, limit).await?;
            off_loop(move || Ok(grep::reading(&wanted, &matches, output))).await?
        }
        Some("offset") => off_loop(move || range::read(&wanted, kept, output)).await?,
        _ => off_loop(move || part::read(&wanted, kept, output)).await?,
    };
    Ok(Found::Reading(reading))
}

/// Reads and counts off the event loop. The work is proportional to its bytes.
async fn off_loop(
    work: impl FnOnce() -> Result<Reading, ReadError> + Send + 'static,
) -> Result<Reading, ReadError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| io::Error::other(error.to_string()))?
}
