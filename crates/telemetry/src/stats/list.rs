//! The files of daily statistics.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Lists the days on disk, the oldest first; empty if there is no folder.
pub(super) fn list(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let listed = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed?,
    };
    let days = listed.filter_map(|file| {
        let path = file.ok()?.path();
        let name = path
            .file_name()?
            .to_str()?
            .strip_suffix(".json")?
            .to_owned();
        Some((name, path))
    });
    let mut days: Vec<_> = days.collect();
    days.sort();
    Ok(days)
}
