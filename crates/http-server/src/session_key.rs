//! The key that signs the ids of sessions: a file in the state folder, so that the next process has the
//! same key.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::Path,
};

use files::{is_private, write_durable, write_new_durable};

const FILE: &str = "session.key";

pub(super) const KEY_BYTES: usize = 32;

/// Loads the key of this state folder. If none can be stored, returns one for this process only.
pub(super) fn load_key(state_dir: &Path) -> [u8; KEY_BYTES] {
    load_or_make(&state_dir.join(FILE)).unwrap_or_else(|error| {
        let file = state_dir.join(FILE);
        tracing::warn!(%error, file = %file.display(), "the key for sessions over HTTP cannot be stored: \
             they end with this process");
        make_key()
    })
}

/// Creates a random key.
pub(super) fn make_key() -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    getrandom::fill(&mut key).expect("the system has randomness");
    key
}

fn load_or_make(place: &Path) -> io::Result<[u8; KEY_BYTES]> {
    match read_key(place) {
        Ok(Some(key)) => Ok(key),
        Ok(None) => {
            let file = place.display();
            tracing::warn!(%file, "the key is invalid or readable by others: it was replaced, so sessions over HTTP start again");
            let key = make_key();
            write_durable(place, &key)?;
            Ok(key)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => write_new(place),
        Err(error) => Err(error),
    }
}

/// Writes the first key of a folder, or reads the one that another process wrote meanwhile.
fn write_new(place: &Path) -> io::Result<[u8; KEY_BYTES]> {
    let key = make_key();
    match write_new_durable(place, &key) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read_key(place)?.ok_or(error),
        other => other.map(|()| key),
    }
}

/// Reads the key. None if the file is not a key, or if other users may read it.
fn read_key(place: &Path) -> io::Result<Option<[u8; KEY_BYTES]>> {
    let about = fs::symlink_metadata(place)?;
    let is_key = about.is_file() && is_private(&about);
    if !is_key || about.len() != KEY_BYTES as u64 {
        return Ok(None);
    }
    let mut key = [0; KEY_BYTES];
    File::open(place)?.read_exact(&mut key)?;
    Ok(Some(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_folder_has_one_private_key() {
        use std::{fs::Permissions, os::unix::fs::PermissionsExt as _};
        let folder = tempfile::tempdir().unwrap();
        let key = load_key(folder.path());
        assert_eq!(load_key(folder.path()), key);
        let place = folder.path().join(FILE);
        let mode = fs::metadata(&place).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(write_new(&place).unwrap(), key);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);

        fs::set_permissions(&place, Permissions::from_mode(0o644)).unwrap();
        let second = load_key(folder.path());
        assert_ne!(second, key);
        fs::write(&place, "short").unwrap();
        let third = load_key(folder.path());
        assert_ne!(third, second);
        assert_eq!(load_key(folder.path()), third);
    }

    #[test]
    fn where_none_can_be_kept_each_process_has_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let nowhere = folder.path().join("no/folder");
        assert_ne!(load_key(&nowhere), load_key(&nowhere));
        fs::create_dir(folder.path().join(FILE)).unwrap();
        assert_ne!(load_key(folder.path()), load_key(folder.path()));
    }
}
