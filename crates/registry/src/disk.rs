//! Files of one registry folder: private, whole or absent, and in memory where a folder cannot
//! be written.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

#[derive(Debug)]
pub(crate) struct Disk {
    folder: PathBuf,
    /// What could not be written because the folder is read-only; it is read before the disk.
    memory: Mutex<BTreeMap<String, Kept>>,
    #[cfg(test)]
    pub(crate) faults: faults::Faults,
}

#[derive(Debug, Clone)]
struct Kept {
    bytes: Vec<u8>,
    writes: u64,
}

/// Tells two states of one file apart without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stamp {
    Absent,
    OnDisk {
        inode: u64,
        bytes: u64,
        seconds: i64,
        nanoseconds: i64,
    },
    InMemory {
        writes: u64,
    },
}

/// The writers' turn; given up when dropped. `None` inside: nobody else can write here either.
#[derive(Debug)]
pub(crate) struct Turn(#[expect(dead_code, reason = "held for its lock")] Option<File>);

impl Disk {
    /// Makes the folder if that is possible; a folder that cannot be made reads as empty.
    pub(crate) fn new(folder: &Path) -> Self {
        let disk = Self {
            folder: folder.to_owned(),
            memory: Mutex::default(),
            #[cfg(test)]
            faults: faults::Faults::default(),
        };
        if let Err(error) = private_folder(&disk.path(SNAPSHOTS)) {
            tracing::debug!(%error, "registry folder cannot be made, keeping to memory");
        }
        disk
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        match self.memory().get(name) {
            Some(kept) => Ok(kept.bytes.clone()),
            None => fs::read(self.path(name)),
        }
    }

    pub(crate) fn stamp(&self, name: &str) -> Stamp {
        if let Some(kept) = self.memory().get(name) {
            return Stamp::InMemory {
                writes: kept.writes,
            };
        }
        match fs::metadata(self.path(name)) {
            Ok(found) => Stamp::OnDisk {
                inode: found.ino(),
                bytes: found.len(),
                seconds: found.mtime(),
                nanoseconds: found.mtime_nsec(),
            },
            Err(_) => Stamp::Absent,
        }
    }

    /// Writes a file whole: readers see the old bytes or the new ones, also after a crash.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        match self.replace(name, bytes) {
            Err(error) if is_read_only(&error) => {
                self.remember(name, bytes);
                Ok(())
            }
            outcome => outcome,
        }
    }

    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        self.step()?;
        if self.memory().remove(name).is_some() {
            return Ok(());
        }
        fs::remove_file(self.path(name))
    }

    /// Names of the snapshot files (with their folder), newest first.
    pub(crate) fn snapshots(&self) -> Vec<String> {
        let listed = fs::read_dir(self.path(SNAPSHOTS))
            .into_iter()
            .flatten()
            .flatten();
        let mut found: Vec<_> = listed
            .filter_map(|file| {
                let written = file.metadata().ok()?.modified().ok()?;
                Some((written, file.file_name().into_string().ok()?))
            })
            .collect();
        found.sort_by(|a, b| b.cmp(a));
        found
            .into_iter()
            .map(|(_, name)| snapshot_path(&name))
            .collect()
    }

    /// Waits for the writers' turn.
    pub(crate) fn take_turn(&self) -> io::Result<Turn> {
        self.turn(|file| file.lock().map(|()| true))
            .map(|turn| turn.expect("lock() waits"))
    }

    /// The writers' turn if nobody has it now.
    pub(crate) fn try_turn(&self) -> io::Result<Option<Turn>> {
        self.turn(|file| match file.try_lock() {
            Ok(()) => Ok(true),
            Err(fs::TryLockError::WouldBlock) => Ok(false),
            Err(fs::TryLockError::Error(error)) => Err(error),
        })
    }

    fn turn(&self, lock: impl Fn(&File) -> io::Result<bool>) -> io::Result<Option<Turn>> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        match options.open(self.path("lock")) {
            Ok(file) => Ok(lock(&file)?.then(|| Turn(Some(file)))),
            Err(error) if is_read_only(&error) => Ok(Some(Turn(None))),
            Err(error) => Err(error),
        }
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.path(name);
        let parent = path.parent().unwrap_or(&self.folder);
        self.step()?;
        private_folder(parent)?;
        let mut file = tempfile::Builder::new()
            .prefix(TEMPORARY)
            .tempfile_in(parent)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        self.step()?;
        file.persist(&path).map_err(|error| error.error)?;
        self.step()?;
        File::open(parent)?.sync_all()
    }

    fn remember(&self, name: &str, bytes: &[u8]) {
        let mut memory = self.memory();
        let writes = memory.get(name).map_or(0, |kept| kept.writes + 1);
        let bytes = bytes.to_vec();
        memory.insert(name.to_owned(), Kept { bytes, writes });
    }

    fn memory(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Kept>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A point at which a test may let the process die.
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

/// Makes a folder that only its owner may enter, with its parents.
pub(crate) fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

pub(crate) fn snapshot_path(file_name: &str) -> String {
    format!("{SNAPSHOTS}/{file_name}")
}

fn is_read_only(error: &io::Error) -> bool {
    use ErrorKind::{NotADirectory, NotFound, PermissionDenied, ReadOnlyFilesystem};
    matches!(
        error.kind(),
        NotADirectory | NotFound | PermissionDenied | ReadOnlyFilesystem
    )
}

const SNAPSHOTS: &str = "snapshots";

/// How unfinished files begin; a later commit sweeps what a dead process left.
pub(crate) const TEMPORARY: &str = ".unfinished-";

#[cfg(test)]
pub(crate) mod faults {
    use std::io;
    use std::sync::atomic::{AtomicI64, Ordering};

    /// Lets the process "die" at its n-th file operation: that one and all later ones fail.
    #[derive(Debug)]
    pub(crate) struct Faults(AtomicI64);

    impl Default for Faults {
        fn default() -> Self {
            Self(AtomicI64::new(i64::MAX))
        }
    }

    impl Faults {
        pub(crate) fn die_after(&self, steps: i64) {
            self.0.store(steps, Ordering::SeqCst);
        }

        pub(crate) fn step(&self) -> io::Result<()> {
            match self.0.fetch_sub(1, Ordering::SeqCst) {
                left if left > 0 => Ok(()),
                _ => Err(io::Error::other("killed")),
            }
        }
    }
}
