//! The audit log: a line of JSON for each call, appended and never changed. Each line carries a digest
//! of itself and of the line before, so any change is detected. The anchor beside the folder holds the
//! number and digest of the last line, so lines that are removed from the end are detected as well.
//!
//! The log is divided into segments named after their first line, `000000000001.jsonl`. The oldest
//! segments are removed when the size limit is reached. A segment begins with the digest that it
//! follows.

mod anchor;
mod line;
mod masking;
mod read;
mod segments;
mod tail;
mod witness;

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use files::Lock;

use crate::record::{AuditHead, Event};
use anchor::Anchor;
use line::{continuation, head, lost_body};
use segments::{LOCK, list_segments, segment_number};
use tail::Tail;

pub use read::{Broken, Filter, Verified, read, read_newest, verify};
pub use witness::{find_head, has_lines};

/// The number of segments into which the size limit is divided. A segment is the smallest part of the
/// log that is removed.
const SEGMENTS: u64 = 8;

/// The log of one folder, which several processes may write to.
#[derive(Debug)]
pub(crate) struct AuditLog {
    folder: PathBuf,
    hide: Hide,
    tail: Option<Tail>,
}

/// Removes the secrets of the configuration from a text. Returns `None` if the secrets cannot be read.
#[derive(Clone)]
pub struct Hide(HideText);

type HideText = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

impl Hide {
    /// Makes a `Hide` from this function.
    pub fn new(hide: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(hide))
    }

    /// Returns the text without secrets.
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
    /// Makes the log. Opens no file yet.
    pub(crate) fn new(folder: PathBuf, hide: Hide) -> Self {
        Self {
            folder,
            hide,
            tail: None,
        }
    }

    /// Appends a line for each event that is logged, in one write and one sync. `lost` is the number of earlier records
    /// that could not be written. Waits for the lock if another process holds it. Returns the newest call that
    /// was written. After an error, it is possible that nothing was written.
    pub(crate) fn append(
        &mut self,
        events: &[Event],
        lost: u64,
        bytes_max: u64,
    ) -> io::Result<Option<AuditHead>> {
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
            // An unfinished line of another process stays as it is, separated from the lines that
            // follow.
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
        let mut head = None;
        for event in events {
            let number = tail.number + 1;
            match event {
                Event::Call(call) | Event::Refusal(call) => {
                    let body = line::body(number, call, |text| self.hide.apply(text));
                    tail.add(&mut text, &body, true);
                    let digest = tail.digest.clone();
                    head = Some(AuditHead { number, digest });
                }
                Event::Head { at_ms, node, head } => {
                    let body = line::head_body(number, *at_ms, node, head);
                    tail.add(&mut text, &body, true);
                }
                _ => {}
            }
        }
        // The lines are written durably before the anchor counts them.
        files::append_durable(&tail.segment, text.as_bytes())?;
        tail.bytes += text.len() as u64;
        anchor.last = tail.number;
        anchor.digest.clone_from(&tail.digest);
        anchor.write(&self.folder)?;
        self.tail = Some(tail);
        Ok(head)
    }
}

/// Removes the oldest segments until the log is no larger than `bytes_max`. The anchor stops counting
/// their lines before they are removed.
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
