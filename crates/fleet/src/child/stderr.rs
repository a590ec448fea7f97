//! The stderr of a child: its last lines for messages, all of them for its log.

use std::{collections::VecDeque, sync::Arc};

use parking_lot::Mutex;
use printable::Redactor;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::ChildStderr,
};

use super::telling::{self, Telling};
use crate::{
    limits::{STDERR_LINE_BYTES_MAX, STDERR_LINES_MAX},
    log::Log,
};

/// The last lines a child wrote to stderr.
#[derive(Debug, Default)]
pub(super) struct Tail(Mutex<VecDeque<String>>);

impl Tail {
    fn push(&self, line: String) {
        let mut lines = self.0.lock();
        if lines.len() == STDERR_LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    pub(super) fn last_lines(&self, lines_max: usize) -> String {
        let lines = self.0.lock();
        let before = lines.len().saturating_sub(lines_max);
        lines
            .range(before..)
            .cloned()
            .collect::<Vec<_>>()
            .join("\n")
    }

    pub(super) fn find_telling(&self) -> Option<Telling> {
        let lines = self.0.lock();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        telling::find_telling(&lines)
    }
}

/// The places to which lines of stderr go, without colours and secrets.
pub(super) struct StderrSinks {
    pub(super) tail: Arc<Tail>,
    pub(super) mask: Arc<Redactor>,
    pub(super) log: Option<Log>,
}

impl StderrSinks {
    fn push(&mut self, line: &[u8], is_cut: bool) {
        let text = String::from_utf8_lossy(line);
        let text = printable::prose(&text)
            .trim_end_matches('\n')
            .replace('\n', " ");
        let text = if is_cut {
            // A character may be cut as well.
            let whole = text.trim_end_matches(char::REPLACEMENT_CHARACTER);
            self.mask.apply_to_cut(whole)
        } else {
            self.mask.apply(&text)
        };
        if let Some(log) = &mut self.log {
            log.push(text.clone());
        }
        self.tail.push(text);
    }
}

/// Reads stderr to its end, whatever comes: a child whose stderr is full stands still.
pub(super) async fn drain(output: ChildStderr, mut sinks: StderrSinks) {
    let mut reader = BufReader::new(output);
    let mut line = Vec::new();
    let mut is_cut = false;
    while let Ok(chunk) = reader.fill_buf().await {
        if chunk.is_empty() {
            break;
        }
        let end = memchr::memchr(b'\n', chunk);
        let text = &chunk[..end.unwrap_or(chunk.len())];
        let room = STDERR_LINE_BYTES_MAX - line.len();
        line.extend_from_slice(&text[..text.len().min(room)]);
        is_cut |= text.len() > room;
        let taken = end.map_or(chunk.len(), |at| at + 1);
        reader.consume(taken);
        if end.is_some() {
            sinks.push(&line, is_cut);
            line.clear();
            is_cut = false;
        }
    }
    if !line.is_empty() {
        sinks.push(&line, is_cut);
    }
    if let Some(log) = sinks.log {
        log.end().await;
    }
}
