//! The audit log: a line of JSON for each call, appended and never changed. Each line carries a digest
//! of itself and of the line before, so a change anywhere shows; the anchor beside the folder has the
//! last line, so that lines taken from the end show as well.
//!
//! The log is divided into segments named after their first line, `000000000001.jsonl`; the oldest go
//! when the room is used up. A segment begins with the digest that it follows.

mod anchor;
mod line;
mod masking;
mod read;
mod segments;
mod tail;

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use files::Lock;

use crate::record::CallRecord;
use anchor::Anchor;
use line::{continuation, head, lost_body};
use segments::{LOCK, list_segments, segment_number};
use tail::Tail;

pub use read::{Broken, Filter, Verified, read, verify};

/// Segments that the room is divided into: so much of it at least is always kept.
const SEGMENTS: u64 = 8;

/// The log of one folder, which several processes may write to.
#[derive(Debug)]
pub struct AuditLog {
    folder: PathBuf,
    hide: Hide,
    tail: Option<Tail>,
}

/// Takes the secrets of the configuration out of a text; answers none where they cannot be read.
#[derive(Clone)]
pub struct Hide(HideText);

type HideText = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

impl Hide {
    /// Hides secrets by this function.
    pub fn new(hide: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(hide))
    }

    /// The text without secrets.
    pub fn apply(&self, text: &str) -> Option<String> {
        (self.0)(text)
    }
}

impl fmt::Debug for Hide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hide")
    }
}

impl AuditLog {
    /// Opens nothing yet.
    pub fn new(folder: PathBuf, hide: Hide) -> Self {
        Self {
            folder,
            hide,
            tail: None,
        }
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
        let _turn = Lock::take(&self.folder.join(LOCK))?;
        let anchor = Anchor::read(&self.folder)?;
        let mut tail = Tail::find(&self.folder, self.tail.take(), anchor.as_ref())?;
        let mut anchor = anchor.unwrap_or_else(|| Anchor {
            first: tail.first,
            last: tail.number,
            digest: tail.digest.clone(),
            since: tail.number + 1,
        });
        let mut text = String::new();
        if tail.is_unfinished() {
            // An unfinished line of another process stays as it is, apart from the lines that follow.
            text.push_str(tail.finish_line());
            if tail.torn_bytes > 0 && tail.is_anchored {
                let body = continuation(&tail.digest, tail.torn_bytes);
                tail.add(&mut text, &body, false);
            }
            tail.torn_bytes = 0;
        } else if tail.bytes >= bytes_max / SEGMENTS {
            tail = tail.next_segment(&self.folder);
            make_room(&self.folder, bytes_max - bytes_max / SEGMENTS, &mut anchor)?;
        }
        if tail.bytes == 0 {
            tail.add(&mut text, &head(&tail.digest), false);
        }
        if lost > 0 {
            let body = lost_body(tail.number + 1, lost);
            tail.add(&mut text, &body, true);
        }
        for call in calls {
            let body = line::body(tail.number + 1, call, |text| self.hide.apply(text));
            tail.add(&mut text, &body, true);
        }
        // The lines are on disk before the anchor says that they are there.
        files::append_durable(&tail.segment, text.as_bytes())?;
        tail.bytes += text.len() as u64;
        anchor.last = tail.number;
        anchor.digest.clone_from(&tail.digest);
        anchor.write(&self.folder)?;
        self.tail = Some(tail);
        Ok(())
    }
}

/// Removes the oldest segments until no more than this is left. The anchor gives up their lines before
/// they go.
fn make_room(folder: &Path, bytes_max: u64, anchor: &mut Anchor) -> io::Result<()> {
    let segments = list_segments(folder)?;
    let size = |path: &PathBuf| fs::metadata(path).map_or(0, |it| it.len());
    let mut bytes: u64 = segments.iter().map(size).sum();
    let mut removed = Vec::new();
    let mut kept = segments.into_iter();
    while bytes > bytes_max
        && let Some(segment) = kept.next()
    {
        bytes -= size(&segment);
        removed.push(segment);
    }
    if removed.is_empty() {
        return Ok(());
    }
    let first = kept.next().and_then(|segment| segment_number(&segment));
    anchor.first = first.unwrap_or(anchor.last + 1);
    anchor.write(folder)?;
    removed.iter().try_for_each(fs::remove_file)
}

#[cfg(test)]
mod tests;
