//! The files of the audit log, named after their first lines.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

pub(super) fn segment_path(folder: &Path, first: u64) -> PathBuf {
    folder.join(format!("{first:012}.jsonl"))
}

pub(super) fn segment_number(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    name.strip_suffix(".jsonl")?.parse().ok()
}

/// Lists the segments, the oldest first; empty if there is no folder.
pub(super) fn list_segments(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let listed = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed?,
    };
    let paths = listed.filter_map(|file| Some(file.ok()?.path()));
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| segment_number(path).is_some())
        .collect();
    paths.sort_by_key(|path| segment_number(path));
    Ok(paths)
}

/// The file in the log's folder that writers and readers lock.
pub(super) const LOCK: &str = "lock";
