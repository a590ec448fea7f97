//! Files that are replaced atomically: each is written beside its destination, then renamed.

use std::{
    fs::{self, Permissions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

use crate::{note, system};

/// The prefix of an unfinished file's name; an old one was left by a process that died.
pub const UNFINISHED: &str = ".unfinished-";

/// A file that is being written; it is removed if it is dropped before [`Unfinished::finish`].
#[derive(Debug)]
pub struct Unfinished {
    file: NamedTempFile,
    place: PathBuf,
}

impl Unfinished {
    /// Creates a private file in the folder of `place`.
    pub fn begin(place: &Path) -> io::Result<Self> {
        let file = tempfile::Builder::new()
            .prefix(UNFINISHED)
            .tempfile_in(folder_of(place))?;
        note!(Create(file.path()));
        let place = place.to_owned();
        Ok(Self { file, place })
    }

    /// Waits until the written bytes survive a power loss.
    pub fn sync(&self) -> io::Result<()> {
        let file = self.file.as_file();
        system::synced(file, file.sync_all())?;
        note!(SyncFile(self.file.path()));
        Ok(())
    }

    /// Sets another mode than the private one.
    pub(crate) fn set_permissions(&mut self, mode: Permissions) -> io::Result<()> {
        self.file.as_file().set_permissions(mode)
    }

    /// The current path of the file.
    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Exchanges the file with the one at its destination. Returns `false`, and does nothing, if the
    /// file system does not support that.
    pub(crate) fn exchange(&self) -> io::Result<bool> {
        let is_done = system::exchange(self.path(), &self.place)?;
        if is_done {
            note!(Exchange(self.path(), self.place));
        }
        Ok(is_done)
    }

    /// Moves the file to its destination, replacing a file that exists there.
    pub fn finish(self) -> io::Result<()> {
        note!(Rename(self.file.path(), self.place));
        system::persist(self.file, &self.place)
    }

    /// Moves the file to its destination; fails with an error of the kind `AlreadyExists` if a file
    /// exists there.
    pub fn finish_new(self) -> io::Result<()> {
        #[cfg(any(test, feature = "power-loss"))]
        let from = self.file.path().to_owned();
        let persisted = self.file.persist_noclobber(&self.place);
        persisted.map_err(|error| error.error)?;
        note!(Rename(from, self.place));
        Ok(())
    }
}

impl Write for Unfinished {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        note!(Append(self.file.path(), bytes[..count]));
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Replaces a private file atomically, for content that may be lost: after a power loss it may be the
/// old file, or damaged.
pub fn write_whole(place: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = Unfinished::begin(place)?;
    file.write_all(bytes)?;
    file.finish()
}

/// Replaces a folder by one that `write` fills; the old one is removed. A failure leaves the old one.
pub fn replace_folder<T, E: From<io::Error>>(
    place: &Path,
    write: impl FnOnce(&Path) -> Result<T, E>,
) -> Result<T, E> {
    fs::create_dir_all(folder_of(place))?;
    let both = tempfile::Builder::new()
        .prefix(UNFINISHED)
        .tempdir_in(folder_of(place))?;
    let [new, old] = ["new", "old"].map(|name| both.path().join(name));
    fs::create_dir(&new)?;
    let written = write(&new)?;
    let is_new = !place.exists();
    if !is_new {
        fs::rename(place, &old)?;
    }
    if let Err(error) = fs::rename(&new, place) {
        if !is_new && fs::rename(&old, place).is_err() {
            let _ = both.keep();
        }
        return Err(error.into());
    }
    Ok(written)
}

/// Waits until the names in the folder of `place` survive a power loss.
pub fn sync_folder(place: &Path) -> io::Result<()> {
    system::sync_folder(folder_of(place))?;
    note!(SyncFolder(folder_of(place)));
    Ok(())
}

fn folder_of(place: &Path) -> &Path {
    place
        .parent()
        .filter(|it| *it != "")
        .unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write as _};

    use super::{Unfinished, replace_folder, sync_folder, write_whole};
    use crate::is_private;

    #[test]
    fn a_file_is_private_and_there_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("file");
        write_whole(&place, b"old").unwrap();
        let mut file = Unfinished::begin(&place).unwrap();
        file.write_all(b"new").unwrap();
        assert_eq!(fs::read(&place).unwrap(), b"old");
        file.sync().unwrap();
        file.finish().unwrap();
        sync_folder(&place).unwrap();
        assert_eq!(fs::read(&place).unwrap(), b"new");
        assert!(is_private(&fs::metadata(&place).unwrap()));

        drop(Unfinished::begin(&place).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_is_replaced_when_it_is_whole() {
        let home = tempfile::tempdir().unwrap();
        let place = home.path().join("deep/place");
        let write =
            |name: &'static str| replace_folder(&place, move |new| fs::write(new.join(name), name));
        write("a").unwrap();
        write("b/c").unwrap_err();
        assert_eq!(fs::read(place.join("a")).unwrap(), b"a");
        write("b").unwrap();
        assert!(!place.join("a").exists() && place.join("b").exists());
        let left = fs::read_dir(home.path().join("deep")).unwrap();
        assert_eq!(left.count(), 1);
    }

    #[test]
    fn a_new_file_replaces_none() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("file");
        let finish = |bytes| {
            let mut file = Unfinished::begin(&place).unwrap();
            file.write_all(bytes).unwrap();
            file.finish_new()
        };
        finish(b"first").unwrap();
        let refused = finish(b"second").unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&place).unwrap(), b"first");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_replaced_and_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (victim, place) = (folder.path().join("victim"), folder.path().join("file"));
        fs::write(&victim, "theirs").unwrap();
        std::os::unix::fs::symlink(&victim, &place).unwrap();
        write_whole(&place, b"ours").unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"theirs");
        assert_eq!(fs::read(&place).unwrap(), b"ours");
    }
}
