//! Files that survive a power loss: each is written beside its destination, synced and renamed, and its
//! folder is synced.

use std::{
    fs::{self, Permissions},
    io::{self, ErrorKind, Write as _},
    path::{Path, PathBuf},
};

use crate::{
    note,
    open::open_to_append,
    system::{canonicalize, private_builder, synced},
    whole::{Unfinished, sync_folder},
};

/// Replaces a private file. Readers, also after a power loss, see the old bytes or the new ones.
pub fn write_durable(place: &Path, bytes: &[u8]) -> io::Result<()> {
    begin(place, bytes)?.finish()?;
    sync_folder(place)
}

/// Writes a new private file; fails with an error of the kind `AlreadyExists` if it exists.
pub fn write_new_durable(place: &Path, bytes: &[u8]) -> io::Result<()> {
    begin(place, bytes)?.finish_new()?;
    sync_folder(place)
}

fn begin(place: &Path, bytes: &[u8]) -> io::Result<Unfinished> {
    let mut file = Unfinished::begin(place)?;
    file.write_all(bytes)?;
    file.sync()?;
    Ok(file)
}

/// Appends bytes to a private file, which is created if it is missing. When this returns, they survive
/// a power loss; before, a part of them may be in the file.
pub fn append_durable(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let is_new = !path.exists();
    let mut file = open_to_append(path)?;
    if is_new {
        note!(Create(path));
    }
    file.write_all(bytes)?;
    note!(Append(path, bytes));
    synced(&file, file.sync_data())?;
    note!(SyncFile(path));
    if is_new {
        sync_folder(path)?;
    }
    Ok(())
}

/// Removes a file. A power loss may undo it.
pub fn remove_file(path: &Path) -> io::Result<()> {
    fs::remove_file(path)?;
    note!(Remove(path));
    Ok(())
}

/// The result of replacing a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Replaced {
    /// The file was replaced.
    Yes,
    /// Another program wrote the file after it was read; the bytes of that program are kept.
    ChangedMeanwhile,
}

/// Replaces a file that other programs edit too, unless its bytes are no longer those that were read
/// (`None`: there was no file). Readers, also after a power loss, see the old bytes or the new ones. A
/// link is followed, a file keeps its mode, and a read-only one is refused; a new file is private, and
/// so are the folders that are created for it.
///
/// An editor takes no lock. The new file is exchanged with the old one, which is compared after their
/// folder is synced: so a save in between, even one into the file that was just replaced, is found and
/// restored.
pub fn replace_unchanged(path: &Path, before: Option<&[u8]>, after: &[u8]) -> io::Result<Replaced> {
    let target = resolve(path)?;
    let Some(before) = before else {
        if let Some(folder) = target.parent() {
            private_builder().recursive(true).create(folder)?;
        }
        return match write_new_durable(&target, after) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                Ok(Replaced::ChangedMeanwhile)
            }
            written => written.map(|()| Replaced::Yes),
        };
    };
    let mode = match fs::metadata(&target) {
        Ok(about) => about.permissions(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Replaced::ChangedMeanwhile),
        Err(error) => return Err(error),
    };
    // Its folder may be writable although the file was made read-only on purpose.
    if mode.readonly() {
        return Err(io::Error::new(
            ErrorKind::PermissionDenied,
            "it is read-only",
        ));
    }
    swap(&target, mode, before, after)
}

fn swap(target: &Path, mode: Permissions, before: &[u8], after: &[u8]) -> io::Result<Replaced> {
    let mut file = begin(target, after)?;
    file.set_permissions(mode)?;
    if fs::read(target)? != before {
        return Ok(Replaced::ChangedMeanwhile);
    }
    if !file.exchange()? {
        file.finish()?;
        sync_folder(target)?;
        return Ok(Replaced::Yes);
    }
    sync_folder(target)?;
    if fs::read(file.path())? == before {
        return Ok(Replaced::Yes);
    }
    // If an editor has saved again since then, its text is newer and stays.
    if fs::read(target)? == after {
        file.exchange()?;
        sync_folder(target)?;
    }
    Ok(Replaced::ChangedMeanwhile)
}

/// Resolves the file that a path leads to: a link is followed, also to a file that does not exist yet.
pub fn resolve(path: &Path) -> io::Result<PathBuf> {
    match canonicalize(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => match fs::read_link(path) {
            Ok(target) => Ok(path.parent().unwrap_or(Path::new("")).join(target)),
            Err(_) => Ok(path.to_owned()),
        },
        resolved => resolved,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Replaced, replace_unchanged};

    #[test]
    fn a_file_that_changed_since_it_was_read_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("deep/file");
        let replace =
            |before: Option<&[u8]>, after: &[u8]| replace_unchanged(&place, before, after);
        assert_eq!(
            replace(Some(b"gone"), b"x").unwrap(),
            Replaced::ChangedMeanwhile
        );
        assert_eq!(replace(None, b"first").unwrap(), Replaced::Yes);
        assert_eq!(replace(None, b"x").unwrap(), Replaced::ChangedMeanwhile);
        assert_eq!(
            replace(Some(b"other"), b"x").unwrap(),
            Replaced::ChangedMeanwhile
        );
        assert_eq!(fs::read(&place).unwrap(), b"first");
        assert_eq!(replace(Some(b"first"), b"second").unwrap(), Replaced::Yes);
        assert_eq!(fs::read(&place).unwrap(), b"second");
        assert_eq!(fs::read_dir(place.parent().unwrap()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_keeps_its_mode_and_its_link_and_one_that_is_read_only_is_refused() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};

        use super::write_new_durable;

        let folder = tempfile::tempdir().unwrap();
        let [real, link, dangling] = ["real", "link", "dangling"].map(|it| folder.path().join(it));
        fs::write(&real, "old").unwrap();
        let set_mode = |mode| fs::set_permissions(&real, fs::Permissions::from_mode(mode)).unwrap();
        let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        set_mode(0o640);
        symlink("real", &link).unwrap();
        assert_eq!(
            replace_unchanged(&link, Some(b"old"), b"new").unwrap(),
            Replaced::Yes
        );
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(
            (fs::read(&real).unwrap(), mode(&real)),
            (b"new".to_vec(), 0o640)
        );

        set_mode(0o440);
        assert!(replace_unchanged(&link, Some(b"new"), b"x").is_err());
        assert_eq!(fs::read(&real).unwrap(), b"new");

        symlink("made", &dangling).unwrap();
        assert_eq!(
            replace_unchanged(&dangling, None, b"made").unwrap(),
            Replaced::Yes
        );
        assert_eq!(mode(&folder.path().join("made")), 0o600);
        assert!(write_new_durable(&real, b"x").is_err());
    }
}
