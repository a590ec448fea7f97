//! Files of one registry folder: private, replaced atomically, and held in memory if the folder is
//! not writable.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use files::{FileVersion, LOCK_WAIT, Lock, own_folder, write_durable};
use parking_lot::Mutex;

#[derive(Debug)]
pub(crate) struct Disk {
    folder: PathBuf,
    /// Files that could not be written because the folder is read-only or the disk is full. The
    /// copy in memory is read until the file can be written or another process has written it.
    memory: Mutex<BTreeMap<String, UnwrittenFile>>,
    writes: AtomicU64,
    /// The damaged files that were already logged, with their stamps at that time.
    told: Mutex<BTreeMap<String, Stamp>>,
    #[cfg(test)]
    pub(crate) faults: faults::Faults,
}

#[derive(Debug, Clone)]
struct UnwrittenFile {
    bytes: Vec<u8>,
    writes: u64,
    /// The stamp of the file that this one replaces.
    over: Stamp,
}

/// The state of a file, without its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stamp {
    Absent,
    OnDisk(FileVersion),
    InMemory { writes: u64 },
}

/// The writers' lock, released on drop. Contains `None` if the folder is not writable, because no
/// other process can write there either.
#[derive(Debug)]
pub(crate) struct WriteLock(#[expect(dead_code, reason = "held for its lock")] Option<Lock>);

impl Disk {
    /// Creates the folder if possible; a folder that cannot be created reads as empty.
    pub(crate) fn new(folder: &Path) -> Self {
        let disk = Self {
            folder: folder.to_owned(),
            memory: Mutex::default(),
            writes: AtomicU64::new(0),
            told: Mutex::default(),
            #[cfg(test)]
            faults: faults::Faults::default(),
        };
        let made = own_folder(folder).and_then(|()| own_folder(&disk.path(SNAPSHOTS)));
        if let Err(error) = made {
            tracing::debug!(%error, "the registry folder cannot be created; changes stay in memory");
        }
        disk
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        match self.get_from_memory(name) {
            Some(kept) => Ok(kept.bytes),
            None => fs::read(self.path(name)),
        }
    }

    pub(crate) fn stamp(&self, name: &str) -> Stamp {
        match self.get_from_memory(name) {
            Some(UnwrittenFile { writes, .. }) => Stamp::InMemory { writes },
            None => self.stamp_on_disk(name),
        }
    }

    /// Returns true if the damage of this file in its current state was not logged before, and
    /// records it as logged.
    pub(crate) fn is_newly_damaged(&self, name: &str) -> bool {
        let stamp = self.stamp(name);
        self.told.lock().insert(name.to_owned(), stamp) != Some(stamp)
    }

    fn stamp_on_disk(&self, name: &str) -> Stamp {
        FileVersion::of(&self.path(name)).map_or(Stamp::Absent, Stamp::OnDisk)
    }

    /// Writes a file atomically: readers see either the old bytes or the new ones, even after a
    /// crash.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let written = self.write_kept().and_then(|()| self.replace(name, bytes));
        let outcome = match written {
            Ok(()) => {
                self.memory.lock().remove(name);
                Ok(())
            }
            Err(error) if takes_nothing(&error) => {
                tracing::debug!(name, %error, "kept in memory because it cannot be written");
                self.remember(name, bytes);
                Ok(())
            }
            outcome => outcome,
        };
        self.writes.fetch_add(1, Ordering::Release);
        outcome
    }

    /// Returns a counter that changes with each write by this process.
    pub(crate) fn writes(&self) -> u64 {
        self.writes.load(Ordering::Acquire)
    }

    /// Writes the files that could not be written before, if the disk accepts them now. The
    /// catalog, whose name sorts first, is written last, since it references the others.
    fn write_kept(&self) -> io::Result<()> {
        let names: Vec<String> = self.memory.lock().keys().rev().cloned().collect();
        for name in names {
            if let Some(kept) = self.get_from_memory(&name) {
                self.replace(&name, &kept.bytes)?;
                self.memory.lock().remove(&name);
            }
        }
        Ok(())
    }

    /// Returns the copy of a file in memory, unless another process has written the file meanwhile.
    fn get_from_memory(&self, name: &str) -> Option<UnwrittenFile> {
        let mut memory = self.memory.lock();
        let kept = memory.get(name)?;
        if kept.over == self.stamp_on_disk(name) {
            return Some(kept.clone());
        }
        memory.remove(name);
        None
    }

    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        self.step()?;
        if self.memory.lock().remove(name).is_some() {
            return Ok(());
        }
        files::remove_file(&self.path(name))
    }

    /// Returns the paths of the snapshot files, relative to the registry folder, newest first.
    pub(crate) fn snapshots(&self) -> Vec<String> {
        let listed = fs::read_dir(self.path(SNAPSHOTS)).into_iter().flatten();
        let found = listed.flatten().filter_map(|file| {
            let written = file.metadata().ok()?.modified().ok()?;
            Some((written, file.file_name().into_string().ok()?))
        });
        let mut found: Vec<_> = found.collect();
        found.sort_by(|a, b| b.cmp(a));
        let names = found.iter().map(|(_, name)| snapshot_path(name));
        names.collect()
    }

    /// Takes the writers' lock, and waits at most [`LOCK_WAIT`] for it. Blocks.
    pub(crate) fn take_turn(&self) -> io::Result<WriteLock> {
        self.take_turn_within(LOCK_WAIT)
    }

    /// Takes the writers' lock, and waits at most `wait` for it. Blocks.
    pub(crate) fn take_turn_within(&self, wait: Duration) -> io::Result<WriteLock> {
        match Lock::take_within(&self.path(LOCK), wait) {
            Ok(lock) => Ok(WriteLock(Some(lock))),
            Err(error) if takes_nothing(&error) => Ok(WriteLock(None)),
            Err(error) => Err(error),
        }
    }

    /// Returns the writers' lock, or `None` if another process holds it.
    pub(crate) fn try_turn(&self) -> io::Result<Option<WriteLock>> {
        match Lock::try_take(&self.path(LOCK)) {
            Ok(lock) => Ok(lock.map(|lock| WriteLock(Some(lock)))),
            Err(error) if takes_nothing(&error) => Ok(Some(WriteLock(None))),
            Err(error) => Err(error),
        }
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.path(name);
        self.step()?;
        own_folder(path.parent().unwrap_or(&self.folder))?;
        write_durable(&path, bytes)?;
        self.step()
    }

    fn remember(&self, name: &str, bytes: &[u8]) {
        let mut memory = self.memory.lock();
        let writes = memory.get(name).map_or(0, |kept| kept.writes + 1);
        let kept = UnwrittenFile {
            bytes: bytes.to_vec(),
            writes,
            over: self.stamp_on_disk(name),
        };
        memory.insert(name.to_owned(), kept);
    }

    /// A point at which a test can simulate a crash.
    #[cfg_attr(
        not(test),
        expect(
            clippy::unused_self,
            clippy::unnecessary_wraps,
            reason = "a fault point"
        )
    )]
    pub(crate) fn step(&self) -> io::Result<()> {
        #[cfg(test)]
        self.faults.step()?;
        Ok(())
    }
}

pub(crate) fn snapshot_path(file_name: &str) -> String {
    format!("{SNAPSHOTS}/{file_name}")
}

/// Returns true if no file can be written to the folder, for example because it is read-only or the
/// disk is full.
fn takes_nothing(error: &io::Error) -> bool {
    use ErrorKind::{
        NotADirectory, NotFound, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull,
    };
    matches!(
        error.kind(),
        NotADirectory
            | NotFound
            | PermissionDenied
            | QuotaExceeded
            | ReadOnlyFilesystem
            | StorageFull
    )
}

const SNAPSHOTS: &str = "snapshots";

const LOCK: &str = "lock";

#[cfg(test)]
pub(crate) mod faults {
    use std::io;
    use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

    /// Simulates a crash at the n-th file operation: that operation and all later ones fail.
    #[derive(Debug)]
    pub(crate) struct Faults {
        steps: AtomicI64,
        is_full: AtomicBool,
    }

    impl Default for Faults {
        fn default() -> Self {
            Self {
                steps: AtomicI64::new(i64::MAX),
                is_full: AtomicBool::new(false),
            }
        }
    }

    impl Faults {
        pub(crate) fn die_after(&self, steps: i64) {
            self.steps.store(steps, Ordering::SeqCst);
        }

        /// Simulates a full disk, or ends the simulation.
        pub(crate) fn fill(&self, is_full: bool) {
            self.is_full.store(is_full, Ordering::SeqCst);
        }

        pub(crate) fn step(&self) -> io::Result<()> {
            if self.is_full.load(Ordering::SeqCst) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            match self.steps.fetch_sub(1, Ordering::SeqCst) {
                left if left > 0 => Ok(()),
                _ => Err(io::Error::other("killed")),
            }
        }
    }
}
