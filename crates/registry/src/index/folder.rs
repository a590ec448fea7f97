//! The folder of the index: Tantivy's directory, with private files and a timeout for its locks.

use std::{fs, io, path::Path, sync::Arc, time::Duration};

use files::{Lock, make_private};
use tantivy::TantivyError;
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    Directory, DirectoryLock, FileHandle, MmapDirectory, WatchCallback, WatchHandle, WritePtr,
};

/// The timeout for a lock of the index. Tantivy holds one while it opens or lists a few files;
/// after the timeout, this process builds an index in memory.
const INDEX_LOCK_WAIT: Duration = Duration::from_millis(500);

/// A directory with a lock timeout and private files. Tantivy alone waits without limit for the
/// lock under which segments are opened, so a suspended process would block every other process
/// that loads the index. Tantivy also creates segments that every user can read.
#[derive(Debug, Clone)]
pub(super) struct IndexFolder {
    files: MmapDirectory,
    path: Arc<Path>,
}

impl IndexFolder {
    pub(super) fn open(path: &Path) -> Result<Self, TantivyError> {
        Ok(Self {
            files: MmapDirectory::open(path)?,
            path: Arc::from(path),
        })
    }
}

/// Restricts the permissions of files that an older version created. A file that cannot be changed
/// is protected by its folder.
pub(super) fn make_all_private(folder: &Path) {
    for file in fs::read_dir(folder).into_iter().flatten().flatten() {
        let _ = make_private(&file.path());
    }
}

impl Directory for IndexFolder {
    fn acquire_lock(&self, lock: &tantivy::directory::Lock) -> Result<DirectoryLock, LockError> {
        // Takes the same kind of lock as Tantivy, so that other versions of this program respect
        // it.
        let path = self.path.join(&lock.filepath);
        match Lock::take_within(&path, INDEX_LOCK_WAIT) {
            Ok(lock) => Ok(DirectoryLock::from(Box::new(lock))),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(LockError::LockBusy),
            Err(error) => Err(LockError::wrap_io_error(error)),
        }
    }

    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        self.files.get_file_handle(path)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        self.files.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.files.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let file = self.files.open_write(path)?;
        let private = make_private(&self.path.join(path));
        private.map_err(|error| OpenWriteError::wrap_io_error(error, path.to_owned()))?;
        Ok(file)
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        self.files.atomic_read(path)
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        self.files.atomic_write(path, data)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.files.sync_directory()
    }

    fn watch(&self, callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.files.watch(callback)
    }
}
