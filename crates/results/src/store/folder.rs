//! The folder of kept results as it is on the disk. Everything here may block.

use std::{
    collections::VecDeque,
    fs, io,
    path::PathBuf,
    time::{Duration, Instant, SystemTime},
};

use bytes::Bytes;
use files::{Lock, UNFINISHED, Unfinished, own_folder, write_whole};
use parking_lot::Mutex;
use tool::ClientId;
use tracing::debug;

use super::{
    error::HandleError,
    form::{self, Draft, PartEnds, may_read},
    handle::Handle,
    kept::KeptResult,
};

/// Kept results on the disk: the folder, the time they are kept, and their size limit.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) path: PathBuf,
    pub(super) keep: Duration,
    pub(super) keep_bytes: u64,
    /// The bytes that results used after the last sweep plus those written since, and the time of
    /// that sweep.
    used: Mutex<Option<(u64, Instant)>>,
    /// The parts of results that were written without them and read since, the oldest first.
    cut: Mutex<VecDeque<(Handle, PartEnds)>>,
}

/// The most parts that are remembered for the next reading, 16 bytes each; those of the last result
/// always are.
const PARTS_MAX: usize = 100_000;

/// A file that was being written for longer than this was abandoned by a writer that died.
const WRITING_MAX: Duration = Duration::from_hours(1);

/// The longest wait for another process that writes a result: some hundred megabytes on a busy disk.
const WRITER_WAIT: Duration = Duration::from_mins(1);

/// The least time between two sweeps while there is room. A sweep finds expired results, and those
/// that other processes wrote.
const SWEEP_EVERY: Duration = Duration::from_mins(1);

/// A sweep that finds no room frees this part of all room in addition, so that the next result needs
/// no sweep.
const SPARE_PART: u64 = 16;

impl Folder {
    pub(super) fn new(path: PathBuf, keep: Duration, keep_bytes: u64) -> Self {
        Self {
            path,
            keep,
            keep_bytes,
            used: Mutex::default(),
            cut: Mutex::default(),
        }
    }

    /// Writes a result completely, or not at all.
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

    /// Tells other processes that a result is being written, until [`Folder::end_announcement`], or until our
    /// process ends.
    pub(super) fn announce(&self, handle: &Handle) -> io::Result<Lock> {
        own_folder(&self.path)?;
        Lock::take_within(&self.announcement(handle), Duration::ZERO)
    }

    pub(super) fn end_announcement(&self, handle: &Handle, lock: Lock) {
        // Removed before it is unlocked: a reader that waits for it finds the result.
        let _ = fs::remove_file(self.announcement(handle));
        drop(lock);
    }

    /// Waits for a process that announced this result.
    fn await_writer(&self, handle: &Handle) {
        let announcement = self.announcement(handle);
        if announcement.exists() && Lock::take_within(&announcement, WRITER_WAIT).is_ok() {
            // Its writer has died, or removed it a moment ago.
            let _ = fs::remove_file(announcement);
        }
    }

    /// Writes the file of a result of another machine, if there is none.
    pub(super) fn copy(&self, handle: &Handle, content: &[u8]) -> io::Result<()> {
        own_folder(&self.path)?;
        let path = self.file(handle);
        if path.exists() {
            return Ok(());
        }
        write_whole(&path, content)
    }

    pub(super) fn read(&self, handle: &Handle) -> Option<Bytes> {
        fs::read(self.file(handle)).ok().map(Bytes::from)
    }

    /// Returns true if there is no room left, or the last sweep was a while ago. A sweep reads the
    /// date of every result, so it does not run after each one.
    pub(super) fn is_sweep_due(&self) -> bool {
        self.used
            .lock()
            .is_none_or(|(used, at)| used > self.keep_bytes || at.elapsed() >= SWEEP_EVERY)
    }

    /// Opens a result that belongs to the client and has not expired.
    pub(super) fn open(
        &self,
        handle: &Handle,
        client: Option<&ClientId>,
    ) -> Result<KeptResult, HandleError> {
        let path = self.file(handle);
        let about = fs::metadata(&path).or_else(|_| {
            self.await_writer(handle);
            fs::metadata(&path)
        });
        let about = about.map_err(|_| HandleError::Gone)?;
        let age = about.modified().ok().and_then(|at| at.elapsed().ok());
        let mut kept = KeptResult::open(&path)?;
        if !may_read(client, kept.head.owner.as_deref()) {
            return Err(HandleError::Gone);
        }
        if age.is_some_and(|age| age > self.keep) {
            // The next sweep is due now, since there is a file to remove.
            *self.used.lock() = None;
            return Err(HandleError::Gone);
        }
        self.cut(handle, &mut kept)
            .map_err(|error| HandleError::Damaged(error.to_string()))?;
        Ok(kept)
    }

    /// Completes the parts of a result.
    fn cut(&self, handle: &Handle, kept: &mut KeptResult) -> io::Result<()> {
        if kept.head.rooms.is_none() {
            return Ok(());
        }
        if let Some((_, parts)) = self.cut.lock().iter().find(|(it, _)| it == handle) {
            kept.head.parts.clone_from(parts);
            return Ok(());
        }
        kept.cut()?;
        let mut cut = self.cut.lock();
        cut.push_back((handle.clone(), kept.head.parts.clone()));
        let count =
            |cut: &VecDeque<(Handle, Vec<_>)>| cut.iter().map(|(_, it)| it.len()).sum::<usize>();
        while cut.len() > 1 && count(&cut) > PARTS_MAX {
            cut.pop_front();
        }
        Ok(())
    }

    /// Removes expired results, then the oldest beyond the size limit; the newest is kept whatever
    /// its size.
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
            let stays = if file.is_finished {
                age <= self.keep && (is_newest || file.bytes <= room)
            } else {
                age < WRITING_MAX
            };
            if stays {
                room = room.saturating_sub(file.bytes);
                is_newest &= !file.is_finished;
            } else if let Err(error) = fs::remove_file(&file.path) {
                // The sweep of another proxy may have removed it first.
                debug!(%error, "an old result was not removed");
            }
        }
        *self.used.lock() = Some((whole - room, Instant::now()));
    }

    /// The number of results, and their bytes.
    pub(super) fn measure(&self) -> (u64, u64) {
        let mut files = self.files();
        files.retain(|file| file.is_finished);
        let bytes = files.iter().map(|file| file.bytes).sum();
        (files.len() as u64, bytes)
    }

    fn files(&self) -> Vec<ResultFile> {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        entries.filter_map(|entry| ResultFile::of(&entry)).collect()
    }

    /// The name of an unfinished file: a sweep removes one that stays.
    fn announcement(&self, handle: &Handle) -> PathBuf {
        self.path.join(format!("{UNFINISHED}{handle}.lock"))
    }

    fn file(&self, handle: &Handle) -> PathBuf {
        self.path.join(format!("{handle}.result"))
    }
}

struct ResultFile {
    path: PathBuf,
    written: SystemTime,
    bytes: u64,
    /// False while a result is being written.
    is_finished: bool,
}

impl ResultFile {
    fn of(entry: &fs::DirEntry) -> Option<Self> {
        let about = entry.metadata().ok().filter(fs::Metadata::is_file)?;
        let name = entry.file_name();
        Some(Self {
            written: about.modified().ok()?,
            bytes: about.len(),
            path: entry.path(),
            is_finished: !name.as_encoded_bytes().starts_with(UNFINISHED.as_bytes()),
        })
    }
}
