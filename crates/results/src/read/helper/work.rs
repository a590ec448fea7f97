//! The work of the process that runs one reading.

use std::{
    io,
    time::{Duration, Instant},
};

use processes::HelperLimits;
use serde::Serialize;

use super::{
    super::{grep, limits::MEMORY_BYTES_MAX, select},
    query::{HelperQuery, Task},
};
use crate::store::KeptResult;

/// Answers the query of our parent. On failure it prints nothing: the parent has a text for that
/// case.
pub fn answer_query(output: &mut dyn io::Write) -> io::Result<()> {
    let task: Task = serde_json::from_reader(io::stdin().lock())?;
    bound(&task)?;
    // A search ends before this process is ended, so that it can still report its matches.
    let deadline = Instant::now() + Duration::from_millis(task.time_ms) * 5 / 6;
    let kept = KeptResult::reopen(&task.path);
    let kept = kept.map_err(|error| format!("the kept result: {error}"));
    match (task.query, kept) {
        (_, Err(why)) => say(output, &Err::<(), _>(why)),
        (HelperQuery::Grep(query), Ok(kept)) => say(output, &grep::search(&query, &kept, deadline)),
        (HelperQuery::Select(filter), Ok(mut kept)) => {
            say(output, &select::read(&filter, &mut kept))
        }
    }
}

fn say<T: Serialize>(output: &mut dyn io::Write, answer: &Result<T, String>) -> io::Result<()> {
    Ok(serde_json::to_writer(output, answer)?)
}

/// Ensures that we end with our parent, stay within our limits, and leave no core file, which would
/// contain the whole result.
fn bound(task: &Task) -> io::Result<()> {
    let limits = HelperLimits {
        parent: Some(task.parent),
        memory_bytes: MEMORY_BYTES_MAX,
        processor_s: task.time_ms / 1_000,
        file_bytes: None,
    };
    limits.apply()
}
