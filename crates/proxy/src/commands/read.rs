//! `proxy read`: a kept result, as a whole or in part.

use std::{io, sync::Arc};

use gateway::{Gateway, Reply, ToolError};
use results::{Found, Kept, LIMIT_DEFAULT, Output, ReadError, Reading, Unit, Wanted};
use serde_json::json;

use crate::{
    cli::{Global, Read},
    exit::Exit,
    report,
};

pub(super) async fn read(
    gateway: &Arc<Gateway>,
    global: &Global,
    read: Read,
) -> anyhow::Result<Exit> {
    match print(gateway, global, read).await {
        Ok(()) => Ok(Exit::Success),
        Err(error) => {
            report::say(&error.to_string());
            Ok(Exit::Nothing)
        }
    }
}

async fn print(gateway: &Arc<Gateway>, global: &Global, read: Read) -> Result<(), ToolError> {
    let opened = gateway.results.open(&read.handle, None).await;
    let mut kept = opened.map_err(|error| ReadError::Handle(read.handle.clone(), error))?;
    let room = read.max_tokens.unwrap_or(usize::MAX);
    let is_whole = read.is_whole();
    let wanted = read.into_wanted();
    if is_whole {
        return print_whole(&mut kept, global.json)
            .map_err(|error| ToolError::Internal(error.to_string()));
    }
    let store = &gateway.results;
    let found = results::read(wanted, kept, Output { room }, store, LIMIT_DEFAULT).await;
    let Reading { texts, note } = match found? {
        Found::Reading(reading) => reading,
        Found::Value(value) => Reading {
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
fn print_whole(kept: &mut Kept, as_json: bool) -> io::Result<()> {
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
    report::print_data(&Reply::of_server(json, false).printable());
    Ok(())
}

impl Read {
    fn is_whole(&self) -> bool {
        let asked = [&self.grep, &self.select];
        let is_range = self.offset.is_some() || self.limit.is_some();
        asked.iter().all(|it| it.is_none())
            && self.part.is_none()
            && !is_range
            && self.max_tokens.is_none()
    }

    fn into_wanted(self) -> Wanted {
        Wanted {
            handle: self.handle,
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
pub(super) fn work_as_helper() -> Exit {
    match report::print_bytes(results::answer_question) {
        Ok(()) => Exit::Success,
        Err(_) => Exit::Nothing,
    }
}
