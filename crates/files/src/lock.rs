//! A file whose lock processes take in turns.

use std::{
    fs::{File, TryLockError},
    io,
    path::Path,
};

use crate::open::open_to_lock;

/// Held until it is dropped, or its process ends.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for its turn.
    pub fn take(path: &Path) -> io::Result<Self> {
        let file = open_to_lock(path)?;
        file.lock()?;
        Ok(Self { _file: file })
    }

    /// The turn if nobody has it now.
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
    use super::Lock;

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
}
