//! The storage of private files: as plain files, or sealed with a key in the system's keyring.

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use files::{open_private, write_durable};

use crate::keyring;

/// The storage of secrets and logins, as the user chose it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keeping {
    /// In files that no other user may read.
    #[default]
    File,
    /// In the same files, sealed with a key in the system's keyring.
    Keyring,
}

/// True if this program was built with support for the system's keyring.
pub const HAS_KEYRING: bool = cfg!(feature = "keyring");

/// The private files of one configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateFiles {
    /// The state folder that contains them.
    pub state_dir: PathBuf,
    /// The form of their storage.
    pub keeping: Keeping,
}

impl PrivateFiles {
    /// Creates private files that are not sealed.
    pub fn plain(state_dir: &Path) -> Self {
        Self {
            state_dir: state_dir.to_owned(),
            keeping: Keeping::File,
        }
    }

    /// Reads a private file; returns `None` if there is none. A file that was written before the
    /// keyring was chosen is read unsealed. May wait for the keyring, for 20 s at most, and only the
    /// first time.
    pub fn read(&self, path: &Path, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
        let file = match open_private(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let bytes = read_bounded(file, bytes_max)?;
        if !keyring::is_sealed(&bytes) {
            return Ok(Some(bytes));
        }
        let name = path.display();
        if self.keeping == Keeping::File {
            return Err(io::Error::other(format!(
                "{name} is encrypted with a key of the system's keyring; write `secrets.store = \
                 \"keyring\"`, or delete it and store its secrets and logins again"
            )));
        }
        let opened = keyring::open(&self.state_dir, &bytes);
        opened
            .map(Some)
            .map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))
    }

    /// Replaces a private file atomically and durably.
    pub fn write(&self, path: &Path, bytes: Vec<u8>) -> io::Result<()> {
        let bytes = match self.keeping {
            Keeping::File => bytes,
            Keeping::Keyring => keyring::seal(&self.state_dir, bytes)?,
        };
        write_durable(path, &bytes)
    }
}

/// Reads a file to its end. Fails if the file is longer than `bytes_max`.
pub fn read_bounded(file: File, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than {bytes_max} bytes"),
        ));
    }
    Ok(bytes)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use files::open_private;

    use super::read_bounded;

    #[test]
    fn a_file_that_others_may_read_is_refused_and_a_link_too() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "12345").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let refused = open_private(&file).unwrap_err().to_string();
        assert!(refused.contains("chmod 600"), "{refused}");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(open_private(&link).is_err());
        assert_eq!(
            read_bounded(open_private(&file).unwrap(), 5).unwrap(),
            b"12345"
        );
        assert!(read_bounded(open_private(&file).unwrap(), 4).is_err());
    }
}
