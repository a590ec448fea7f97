//! `proxy call --handle`: a kept result, as a whole or in part.

use std::{io, sync::Arc};

use clap::Args;
use gateway::{Gateway, ToolError, ToolReply};
use results::{
    KeptResult, LIMIT_DEFAULT, Output, ReadError, ReadOutcome, ReadRequest, ReadTexts, Unit,
};
use serde_json::json;

use crate::{cli::global::Global, commands::with_gateway, exit::Exit, report};

/// A part of a kept result.
#[derive(Debug, Args)]
#[group(requires = "handle")]
#[command(next_help_heading = "With --handle")]
pub(super) struct PartArgs {
    /// One part, as a client reads it; the parts together are the whole result
    #[arg(long, value_name = "NUMBER", group = "what")]
    part: Option<usize>,
    /// Number of lines (or bytes, or matches) to skip; a negative number counts from the end
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    offset: Option<i64>,
    /// Number of lines (or bytes, or matches)
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,
    /// Count --offset and --limit in bytes
    #[arg(long)]
    bytes: bool,
    /// Lines that match a regular expression, each with two lines of context
    #[arg(long, value_name = "REGEX", group = "what")]
    grep: Option<String>,
    /// Values of a jq expression, one per line
    #[arg(long, value_name = "JQ", group = "what")]
    select: Option<String>,
}

async fn print(
    gateway: &Arc<Gateway>,
    global: &Global,
    handle: String,
    (part, max_tokens): (PartArgs, Option<u64>),
) -> Result<(), ToolError> {
    let opened = gateway.results.open(&handle, None).await;
    let mut kept = opened.map_err(|error| ReadError::Handle(handle.clone(), error))?;
    let room = max_tokens.map_or(usize::MAX, |it| usize::try_from(it).unwrap_or(usize::MAX));
    let is_whole = part.is_whole() && max_tokens.is_none();
    let request = part.into_request(handle);
    if is_whole {
        return print_whole(&mut kept, global.json)
            .map_err(|error| ToolError::Internal(error.to_string()));
    }
    let store = &gateway.results;
    let found = results::read(request, kept, Output { room }, store, LIMIT_DEFAULT).await;
    let ReadTexts { texts, note } = match found? {
        ReadOutcome::Texts(reading) => reading,
        ReadOutcome::Value(value) => ReadTexts {
            texts: vec![value],
            note: String::new(),
        },
    };
    if global.json {
        report::print_json(&json!({"texts": texts, "note": note}));
        return Ok(());
    }
    let written =
        report::print_bytes(|to| texts.iter().try_for_each(|it| to.write_all(it.as_bytes())));
    // The note about the result is for people.
    if !note.is_empty() && !global.quiet {
        report::say(&note);
    }
    written.map_err(|error| ToolError::Internal(error.to_string()))
}

/// Prints one text while it is read; a result of several blocks as `call` prints one.
fn print_whole(kept: &mut KeptResult, as_json: bool) -> io::Result<()> {
    if as_json {
        return report::print_bytes(|mut to| kept.write_json(&mut to));
    }
    if kept.is_one_text() {
        return report::print_bytes(|to| io::copy(&mut kept.reader(0)?, to).map(drop));
    }
    let mut json = Vec::new();
    kept.write_json(&mut json)?;
    let json = String::from_utf8(json).map_err(io::Error::other)?;
    let json = jsonrpc::json(json).map_err(io::Error::other)?;
    report::print_data(&ToolReply::of_server(json, false).printable());
    Ok(())
}

/// Prints the kept result of a handle, or this part of it.
pub(super) fn run(
    global: &Global,
    handle: String,
    (part, max_tokens): (PartArgs, Option<u64>),
) -> anyhow::Result<Exit> {
    with_gateway(global, async |gateway| {
        let printed = print(gateway, global, handle, (part, max_tokens)).await;
        printed.map_err(|error| Exit::Nothing.with(error.to_string()))?;
        Ok(Exit::Success)
    })
}

impl PartArgs {
    fn is_whole(&self) -> bool {
        let is_part = self.part.is_some() || self.grep.is_some() || self.select.is_some();
        !is_part && self.offset.is_none() && self.limit.is_none()
    }

    fn into_request(self, handle: String) -> ReadRequest {
        ReadRequest {
            handle,
            part: self.part,
            offset: self.offset,
            limit: self.limit,
            unit: if self.bytes { Unit::Bytes } else { Unit::Lines },
            grep: self.grep,
            select: self.select,
        }
    }
}

/// The process in which a kept result is searched.
pub(crate) fn work_as_helper() -> Exit {
    Exit::of_hit(report::print_bytes(results::answer_query).is_ok())
}
