//! Reads in a separate process: an untrusted pattern or untrusted data may take unlimited time or
//! memory, and a process can be ended where a thread cannot.
//!
//! The process is our own program (`proxy helper`). It reads one query from stdin and writes the answer
//! to stdout, both as JSON, and inherits nothing of our environment.

pub(super) mod query;
mod work;

use std::{
    io,
    time::{Duration, Instant},
};

use query::{HelperQuery, Task};
use serde::de::DeserializeOwned;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::Child,
    time::timeout,
};

use super::{
    limits::{ANSWER_BYTES_MAX, MEMORY_BYTES_MAX, QUERY_BYTES_MAX, too_long},
    request::ReadError,
};
use crate::store::{KeptResult, ResultStore};

pub use work::answer_query;

/// Asks a process. It waits for its turn and runs within `limit`, and is ended when this future is
/// dropped.
pub(super) async fn ask<T: DeserializeOwned + Send + 'static>(
    query: HelperQuery,
    kept: &KeptResult,
    store: &ResultStore,
    limit: Duration,
) -> Result<T, ReadError> {
    let (kind, time_max) = (query.kind(), query.time_max());
    let begun = Instant::now();
    let Ok(_turn) = timeout(limit, store.reading_turn()).await else {
        return Err(ReadError::TimedOut(limit));
    };
    let left = limit.saturating_sub(begun.elapsed());
    let task = Task {
        query,
        path: kept.path.clone(),
        time_ms: u64::try_from(left.min(time_max).as_millis()).unwrap_or(u64::MAX),
        parent: std::process::id(),
    };
    let task = serde_json::to_vec(&task).expect("texts and numbers are always JSON");
    if task.len() > QUERY_BYTES_MAX {
        let kib = QUERY_BYTES_MAX / 1024;
        let why = format!("longer than {kib} KiB; narrow it");
        return Err(ReadError::Argument(kind, why));
    }
    let mut child = start()?;
    let mut answer = Vec::new();
    let talking = talk(&mut child, &task, &mut answer);
    let ended = timeout(left.min(time_max), talking).await;
    // It has answered, or never will.
    let _ = child.kill().await;
    match ended {
        Ok(read) => read?,
        Err(_) if left < time_max => return Err(ReadError::TimedOut(limit)),
        Err(_) => {
            let seconds = time_max.as_secs();
            let why = format!("ended after {seconds} s; narrow it");
            return Err(ReadError::Argument(kind, why));
        }
    }
    if answer.len() > ANSWER_BYTES_MAX {
        return Err(ReadError::Argument(kind, too_long()));
    }
    let parsing = tokio::task::spawn_blocking(move || parse(&answer));
    let parsed = parsing.await.unwrap_or_else(|_| Err(no_answer()));
    parsed.map_err(|why| ReadError::Argument(kind, why))
}

fn start() -> io::Result<Child> {
    let program = processes::own_program();
    let program = program.ok_or_else(|| io::Error::other("our own program is not found"))?;
    processes::start_helper(&program, &["helper".into()])
}

/// Sends the query, and reads the answer until it is complete, or longer than allowed.
async fn talk(child: &mut Child, task: &[u8], answer: &mut Vec<u8>) -> io::Result<()> {
    let mut stdin = child.stdin.take().expect("it is a pipe");
    // A process that ended before it read the query has no answer either.
    let _ = stdin.write_all(task).await;
    drop(stdin);
    let stdout = child.stdout.take().expect("it is a pipe");
    let mut stdout = stdout.take(ANSWER_BYTES_MAX as u64 + 1);
    stdout.read_to_end(answer).await.map(drop)
}

fn parse<T: DeserializeOwned>(answer: &[u8]) -> Result<T, String> {
    serde_json::from_slice(answer).unwrap_or_else(|_| Err(no_answer()))
}

/// The error for a process that reached its limits and sent no answer.
fn no_answer() -> String {
    let gib = MEMORY_BYTES_MAX / (1024 * 1024 * 1024);
    format!("it needs more than {gib} GiB of memory, or failed; narrow it")
}
