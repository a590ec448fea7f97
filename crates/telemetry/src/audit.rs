//! The audit log: a line of JSON a call, added and never changed. Each line carries a digest of
//! itself and of the line before, so a change anywhere shows.
//!
//! It lies in segments named after their first line, `000000000001.jsonl`; the oldest go when the
//! room is used up. A segment begins with the digest that it follows.

mod line;
mod read;
mod segments;

use std::{
    fs::{self, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use files::Lock;

use crate::record::CallRecord;
use line::{BEGINNING, chained, digest_in, head, lost_body, number_in};

use segments::{list_segments, segment_number, segment_path};

pub use read::{Broken, Filter, Verified, read, verify};

/// Segments that the room is divided into: so much of it at least is always kept.
const SEGMENTS: u64 = 8;

/// The end of a segment that is read to go on behind it: longer than any line.
const TAIL_BYTES: u64 = 64 * 1024;

/// The log of one folder, which several processes may write to.
#[derive(Debug)]
pub struct AuditLog {
    folder: PathBuf,
    tail: Option<Tail>,
}

/// The end of the log, as we left it or found it.
#[derive(Debug)]
struct Tail {
    segment: PathBuf,
    bytes: u64,
    number: u64,
    digest: String,
}

impl AuditLog {
    /// Opens nothing yet.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, tail: None }
    }

    /// Adds a line a call, in one write and one sync. `lost` records before them could not be kept. Waits for
    /// another process's turn; on an error nothing may have been written.
    pub fn append(
        &mut self,
        calls: &[Box<CallRecord>],
        lost: u64,
        bytes_max: u64,
    ) -> io::Result<()> {
        files::own_folder(&self.folder)?;
        let _turn = Lock::take(&self.folder.join("lock"))?;
        let mut tail = self.find_tail()?;
        if tail.bytes >= bytes_max / SEGMENTS {
            tail = Tail {
                segment: segment_path(&self.folder, tail.number + 1),
                bytes: 0,
                ..tail
            };
            make_room(&self.folder, bytes_max - bytes_max / SEGMENTS)?;
        }
        let mut text = String::new();
        if tail.bytes == 0 {
            tail.add(&mut text, &head(&tail.digest), false);
        }
        if lost > 0 {
            let body = lost_body(tail.number + 1, lost);
            tail.add(&mut text, &body, true);
        }
        for call in calls {
            let body = line::body(tail.number + 1, call);
            tail.add(&mut text, &body, true);
        }
        files::append_durable(&tail.segment, text.as_bytes())?;
        tail.bytes += text.len() as u64;
        self.tail = Some(tail);
        Ok(())
    }

    /// The end as it is now: another process may have gone on.
    fn find_tail(&mut self) -> io::Result<Tail> {
        let Some(newest) = list_segments(&self.folder)?.pop() else {
            return Ok(Tail {
                segment: segment_path(&self.folder, 1),
                bytes: 0,
                number: 0,
                digest: BEGINNING.to_owned(),
            });
        };
        let bytes = fs::metadata(&newest)?.len();
        match self.tail.take() {
            Some(tail) if tail.segment == newest && tail.bytes == bytes => Ok(tail),
            _ => read_tail(newest),
        }
    }
}

impl Tail {
    fn add(&mut self, text: &mut String, body: &str, counts: bool) {
        self.digest = chained(&self.digest, body, text);
        self.number += u64::from(counts);
    }
}

/// A line that a process did not finish is taken away: nobody was told of it.
fn read_tail(segment: PathBuf) -> io::Result<Tail> {
    let mut file = OpenOptions::new().read(true).write(true).open(&segment)?;
    let bytes = file.metadata()?.len();
    file.seek(SeekFrom::Start(bytes.saturating_sub(TAIL_BYTES)))?;
    let mut end = Vec::new();
    file.read_to_end(&mut end)?;
    let whole = end
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    let bytes = bytes - (end.len() - whole) as u64;
    file.set_len(bytes)?;
    let text = String::from_utf8_lossy(&end[..whole]);
    let last = text.lines().next_back().unwrap_or_default();
    let first = segment_number(&segment).unwrap_or(1);
    Ok(Tail {
        number: number_in(last).unwrap_or(first.saturating_sub(1)),
        // A line that was made unreadable is found by the look at the whole log.
        digest: digest_in(last).unwrap_or(BEGINNING).to_owned(),
        segment,
        bytes,
    })
}

/// Removes the oldest segments until no more than this is left.
fn make_room(folder: &Path, bytes_max: u64) -> io::Result<()> {
    let segments = list_segments(folder)?;
    let size = |path: &PathBuf| fs::metadata(path).map_or(0, |it| it.len());
    let mut bytes: u64 = segments.iter().map(size).sum();
    for segment in segments {
        if bytes <= bytes_max {
            break;
        }
        bytes -= size(&segment);
        fs::remove_file(&segment)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
