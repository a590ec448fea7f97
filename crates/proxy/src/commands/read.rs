//! `proxy read`: a kept result, whole or what of it is asked for.

use std::{io, sync::Arc};

use serde_json::json;

use crate::{
    cli::{Exit, Global, Read},
    front::{
        Front, Output, Reply, ToolError, Unit, Wanted, read_kept, read_value, select_work, told,
    },
    report,
    results::{Caller, Kept},
};

pub(super) async fn read(front: &Arc<Front>, global: &Global, read: Read) -> anyhow::Result<Exit> {
    match print(front, global, read).await {
        Ok(()) => Ok(Exit::Success),
        Err(error) => {
            report::say(&error.to_string());
            Ok(Exit::Nothing)
        }
    }
}

async fn print(front: &Arc<Front>, global: &Global, read: Read) -> Result<(), ToolError> {
    let mut kept = front.open_kept(&read.handle, &Caller::Person).await?;
    let room = read.max_tokens.unwrap_or(usize::MAX);
    let is_whole = read.is_whole();
    let wanted = read.wanted();
    if is_whole {
        return whole(&mut kept, global.json)
            .map_err(|error| ToolError::Internal(error.to_string()));
    }
    let (texts, note) = match read_value(&wanted, &kept).await? {
        Some(value) => (vec![value], String::new()),
        None => {
            let reading = read_kept(&wanted, kept, Output { room });
            let reading = reading.map_err(|error| told(&error))?;
            (reading.texts, reading.note)
        }
    };
    if global.json {
        report::json(&json!({"texts": texts, "note": note}));
        return Ok(());
    }
    let written = report::bytes(|to| texts.iter().try_for_each(|it| to.write_all(it.as_bytes())));
    // Of what was read, the note is for people.
    if !note.is_empty() && !global.quiet {
        report::say(&note);
    }
    written.map_err(|error| ToolError::Internal(error.to_string()))
}

/// One text goes out as it is read; a result of several blocks as `call` prints one.
fn whole(kept: &mut Kept, as_json: bool) -> io::Result<()> {
    if as_json {
        return report::bytes(|mut to| kept.write_json(&mut to));
    }
    if kept.is_one_text() {
        return report::bytes(|to| io::copy(&mut kept.reader(0)?, to).map(drop));
    }
    let mut json = Vec::new();
    kept.write_json(&mut json)?;
    let json = String::from_utf8(json).map_err(io::Error::other)?;
    let json = fleet::json(json).map_err(io::Error::other)?;
    report::data(&Reply::of_server(json, false).printable());
    Ok(())
}

impl Read {
    fn is_whole(&self) -> bool {
        let asked = [&self.grep, &self.pointer, &self.select, &self.find];
        let is_range = self.offset.is_some() || self.limit.is_some();
        asked.iter().all(|it| it.is_none())
            && self.part.is_none()
            && !is_range
            && self.max_tokens.is_none()
    }

    fn wanted(self) -> Wanted {
        Wanted {
            handle: self.handle,
            part: self.part,
            offset: self.offset,
            limit: self.limit,
            unit: if self.bytes { Unit::Bytes } else { Unit::Lines },
            grep: self.grep,
            pointer: self.pointer,
            select: self.select,
            find: self.find,
        }
    }
}

/// The process in which `--select` runs.
pub(super) fn select() -> Exit {
    let mut failure = None;
    let written = report::bytes(|to| {
        failure = select_work(to).err();
        Ok(())
    });
    let failure = failure.or_else(|| written.err().map(|error| error.to_string()));
    match failure {
        None => Exit::Success,
        Some(why) => {
            report::say(&why);
            Exit::Nothing
        }
    }
}
