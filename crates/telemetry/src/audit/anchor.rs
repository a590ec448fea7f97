//! The anchor: the numbers of the first and last line of the log, kept in a file beside its folder. A
//! log that is shorter than its anchor, or does not match it, was emptied, cut or replaced.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

/// The largest anchor file. An anchor has about a hundred bytes; a longer file is ignored.
const ANCHOR_BYTES_MAX: u64 = 4 * 1024;

/// The lines of a log, as of its last append.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Anchor {
    /// The number of the first line; the lines before it were removed to make room.
    pub(super) first: u64,
    /// The number of the last line.
    pub(super) last: u64,
    /// The digest of the last line.
    pub(super) digest: String,
    /// The number of the first line that was written while an anchor existed.
    pub(super) since: u64,
}

impl Anchor {
    /// Reads the anchor of the log in this folder. Returns `None` if there is none, or if it is
    /// invalid.
    pub(super) fn read(log: &Path) -> io::Result<Option<Self>> {
        let path = anchor_path(log);
        match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Ok(file) if file.len() > ANCHOR_BYTES_MAX => return Ok(None),
            _ => {}
        }
        Ok(serde_json::from_slice(&fs::read(path)?).ok())
    }

    /// Replaces the anchor. After a power failure, either the new or the previous one is there.
    pub(super) fn write(&self, log: &Path) -> io::Result<()> {
        files::write_durable(&anchor_path(log), serde_json::to_string(self)?.as_bytes())
    }
}

/// Returns the path `audit.anchor` beside the folder `audit`.
pub(super) fn anchor_path(log: &Path) -> PathBuf {
    log.with_extension("anchor")
}
