//! The anchor: which lines the log has, kept in a file beside its folder. A log that is shorter than
//! its anchor, or another one, was emptied, cut or replaced.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

/// An anchor is some hundred bytes; a longer file is none.
const ANCHOR_BYTES_MAX: u64 = 4 * 1024;

/// The lines of a log, as of its last append.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Anchor {
    /// The number of the first line; lines before it made room.
    pub(super) first: u64,
    /// The number of the last line.
    pub(super) last: u64,
    /// The digest of the last line.
    pub(super) digest: String,
    /// The number of the first line that was written while there was an anchor.
    pub(super) since: u64,
}

impl Anchor {
    /// Reads the anchor of the log in this folder; none where there is no readable one.
    pub(super) fn read(log: &Path) -> io::Result<Option<Self>> {
        let path = anchor_path(log);
        match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Ok(file) if file.len() > ANCHOR_BYTES_MAX => return Ok(None),
            _ => {}
        }
        Ok(serde_json::from_slice(&fs::read(path)?).ok())
    }

    /// Replaces the anchor. It outlives a loss of power, or the one before it does.
    pub(super) fn write(&self, log: &Path) -> io::Result<()> {
        files::write_durable(&anchor_path(log), serde_json::to_string(self)?.as_bytes())
    }
}

/// `audit.anchor` beside the folder `audit`.
pub(super) fn anchor_path(log: &Path) -> PathBuf {
    log.with_extension("anchor")
}
