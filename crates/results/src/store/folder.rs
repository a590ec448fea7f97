//! The folder of kept results as it is on the disk. Everything here may block.

use std::{
    fs, io,
    path::PathBuf,
    time::{Duration, Instant, SystemTime},
};

use files::{UNFINISHED, Unfinished, own_folder};
use parking_lot::Mutex;
use tool::ClientId;
use tracing::debug;

use super::{
    error::HandleError,
    form::{self, Draft},
    gone,
    handle::Handle,
    kept::Kept,
};

/// Kept results on the disk: where, how long, and how much room they have together.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) path: PathBuf,
    pub(super) keep: Duration,
    pub(super) keep_bytes: u64,
    /// What results took after the last sweep and took since, and when that was.
    used: Mutex<Option<(u64, Instant)>>,
}

/// A file that was being written for longer than this was given up by a writer that died.
const WRITING_MAX: Duration = Duration::from_hours(1);

/// What is too old, and what other processes wrote, is looked for no more often where there is room.
const SWEEP_EVERY: Duration = Duration::from_mins(1);

/// A sweep that finds no room makes so much more of it: a part of all room. The next result then has
/// some without one.
const SPARE_PART: u64 = 16;

/// The extension of what an older version of ours has left of a result that went.
const GONE: &str = "gone";

impl Folder {
    pub(super) fn new(path: PathBuf, keep: Duration, keep_bytes: u64) -> Self {
        Self {
            path,
            keep,
            keep_bytes,
            used: Mutex::default(),
        }
    }

    /// Writes a result whole, or not at all.
    pub(super) fn write(&self, handle: &Handle, draft: &Draft) -> io::Result<()> {
        own_folder(&self.path)?;
        let path = self.file(handle);
        let mut file = Unfinished::begin(&path)?;
        form::write(&mut file, draft)?;
        file.finish()?;
        if let (Some((used, _)), Ok(about)) = (&mut *self.used.lock(), fs::metadata(path)) {
            *used += about.len();
        }
        Ok(())
    }

    /// Whether there is no room left, or nobody has looked for a while. To look is to read the date of
    /// every result: it is not done after each.
    pub(super) fn is_sweep_due(&self) -> bool {
        self.used
            .lock()
            .is_none_or(|(used, at)| used > self.keep_bytes || at.elapsed() >= SWEEP_EVERY)
    }

    /// Opens a result that is the client's and not too old.
    pub(super) fn open(
        &self,
        handle: &Handle,
        client: Option<&ClientId>,
    ) -> Result<Kept, HandleError> {
        let path = self.file(handle);
        let Ok(about) = fs::metadata(&path) else {
            let tool = gone::read(&self.path, handle, client, self.keep);
            return Err(HandleError::Gone { tool });
        };
        let age = about.modified().ok().and_then(|at| at.elapsed().ok());
        let kept = Kept::open(&path)?;
        if !kept.head.belongs_to(client) {
            return Err(HandleError::Gone { tool: None });
        }
        if age.is_some_and(|age| age > self.keep) {
            // There is something to sweep.
            *self.used.lock() = None;
            let tool = Some(kept.head.tool);
            return Err(HandleError::Gone { tool });
        }
        Ok(kept)
    }

    /// Removes what is too old, then the oldest beyond the room there is; the newest has room
    /// whatever its size.
    pub(super) fn sweep(&self) {
        let mut files = self.files();
        files.sort_by_key(|file| std::cmp::Reverse(file.written));
        let taken: u64 = files.iter().map(|file| file.bytes).sum();
        let spare = if taken > self.keep_bytes {
            self.keep_bytes / SPARE_PART
        } else {
            0
        };
        let whole = self.keep_bytes - spare;
        let mut room = whole;
        let mut is_newest = true;
        for file in files {
            let age = file.written.elapsed().unwrap_or_default();
            let stays = match file.what {
                What::Unfinished => age < WRITING_MAX,
                What::Gone => false,
                What::Result => age <= self.keep && (is_newest || file.bytes <= room),
            };
            if stays {
                room = room.saturating_sub(file.bytes);
                is_newest &= !matches!(file.what, What::Result);
            } else {
                self.remove(&file);
            }
        }
        *self.used.lock() = Some((whole - room, Instant::now()));
    }

    /// How many results there are, and their bytes.
    pub(super) fn measure(&self) -> (u64, u64) {
        let mut files = self.files();
        files.retain(|file| matches!(file.what, What::Result));
        let bytes = files.iter().map(|file| file.bytes).sum();
        (files.len() as u64, bytes)
    }

    fn files(&self) -> Vec<File> {
        let Ok(entries) = fs::read_dir(&self.path) else {
            return Vec::new();
        };
        entries
            .filter_map(Result::ok)
            .filter_map(|entry| File::of(&entry))
            .collect()
    }

    /// Removes a file; of a result it is written down whose tool gave it.
    fn remove(&self, file: &File) {
        let handle = file.path.file_stem().and_then(|stem| stem.to_str());
        if matches!(file.what, What::Result)
            && let Some(handle) = handle.and_then(Handle::parse)
            && let Ok(kept) = Kept::reopen(&file.path)
            && let Err(error) = gone::write(&self.path, &handle, &kept.head)
        {
            debug!(%error, "what is left of an old result was not written");
        }
        if let Err(error) = fs::remove_file(&file.path) {
            // Another proxy's sweep may have been here first.
            debug!(%error, "an old result was not removed");
        }
    }

    fn file(&self, handle: &Handle) -> PathBuf {
        self.path.join(format!("{handle}.result"))
    }
}

/// A file of the folder.
struct File {
    path: PathBuf,
    written: SystemTime,
    bytes: u64,
    what: What,
}

enum What {
    Result,
    /// As an older version of ours has left it.
    Gone,
    Unfinished,
}

impl File {
    fn of(entry: &fs::DirEntry) -> Option<Self> {
        let about = entry.metadata().ok().filter(fs::Metadata::is_file)?;
        let path = entry.path();
        let name = entry.file_name();
        let is_unfinished = name.as_encoded_bytes().starts_with(UNFINISHED.as_bytes());
        let what = match path.extension() {
            _ if is_unfinished => What::Unfinished,
            Some(extension) if extension == GONE => What::Gone,
            _ => What::Result,
        };
        Some(Self {
            written: about.modified().ok()?,
            bytes: about.len(),
            path,
            what,
        })
    }
}
