//! A lock on a file that only one process holds at a time.

use std::{
    ffi::OsString,
    fs::{File, TryLockError},
    io,
    path::Path,
    thread::sleep,
    time::{Duration, Instant},
};

use crate::{open::open_to_lock, system};

/// The interval for checking a lock that another process holds: most hold it for one sync of a file.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The longest wait for a lock of another process: a working process holds it for milliseconds, and for
/// some seconds while it writes a large index. After this time the holder hangs or was stopped.
pub const LOCK_WAIT: Duration = Duration::from_secs(20);

/// A lock that is held until it is dropped, or its process ends.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the lock for [`LOCK_WAIT`] at most. Blocks: call it on a thread that may block.
    pub fn take(path: &Path) -> io::Result<Self> {
        Self::take_within(path, LOCK_WAIT)
    }

    /// Waits for the lock for `wait` at most; then fails with [`io::ErrorKind::TimedOut`] and the name
    /// of the file. Blocks: call it on a thread that may block.
    pub fn take_within(path: &Path, wait: Duration) -> io::Result<Self> {
        match Self::wait_for(open_to_lock(path)?, wait) {
            Ok(lock) => lock.ok_or_else(|| io::ErrorKind::Unsupported.into()),
            Err(error) => {
                let (path, ms) = (path.display(), wait.as_millis());
                let why = format!("another process has held the lock {path} for more than {ms} ms");
                Err(io::Error::new(error.kind(), why))
            }
        }
    }

    /// Waits for the lock on a file in a user's folder; fails with an error of the kind `TimedOut`
    /// after `wait`. What is locked leaves no file in the folder: on Unix the folder itself, on Windows a file
    /// elsewhere. Network file systems cannot lock folders: there, a hidden file beside the destination is
    /// locked.
    pub fn take_beside(place: &Path, wait: Duration) -> io::Result<Self> {
        if let Ok(file) = system::open_to_lock_beside(place)
            && let Some(lock) = Self::wait_for(file, wait)?
        {
            return Ok(lock);
        }
        let mut name = OsString::from(".");
        name.push(place.file_name().unwrap_or_default());
        name.push(".lock");
        let file = open_to_lock(&place.with_file_name(name))?;
        let unsupported = || io::ErrorKind::Unsupported.into();
        Self::wait_for(file, wait)?.ok_or_else(unsupported)
    }

    /// Returns `None` if such a file cannot be locked.
    #[expect(
        clippy::disallowed_methods,
        reason = "the system has no lock with a deadline; callers may block"
    )]
    fn wait_for(file: File, wait: Duration) -> io::Result<Option<Self>> {
        let deadline = Instant::now() + wait;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(Self { _file: file })),
                Err(TryLockError::Error(_)) => return Ok(None),
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Err(TryLockError::WouldBlock) => sleep(LOOK_EVERY),
            }
        }
    }

    /// Takes the lock if no process has it now.
    pub fn try_take(path: &Path) -> io::Result<Option<Self>> {
        let file = open_to_lock(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, io::ErrorKind, time::Duration};

    use super::Lock;

    #[test]
    fn a_lock_in_a_folder_of_others_leaves_nothing_there() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("file");
        let held = Lock::take_beside(&place, Duration::ZERO).unwrap();
        let refused = Lock::take_beside(&place, Duration::ZERO).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::TimedOut);
        drop(held);
        assert!(Lock::take_beside(&place, Duration::ZERO).is_ok());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn one_has_it_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let held = Lock::take(&path).unwrap();
        assert!(Lock::try_take(&path).unwrap().is_none());
        drop(held);
        assert!(Lock::try_take(&path).unwrap().is_some());
        assert!(Lock::take(&folder.path().join("no/lock")).is_err());
    }

    #[test]
    fn a_lock_that_is_never_released_is_given_up_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let _held = Lock::take(&path).unwrap();
        let error = Lock::take_within(&path, Duration::from_millis(20)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert!(error.to_string().contains(&path.display().to_string()));
    }
}
