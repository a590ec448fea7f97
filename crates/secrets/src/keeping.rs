//! The storage of private files: as plain files, or sealed with a key in the system's keyring.

use std::{
    io,
    path::{Path, PathBuf},
};

use files::{open_private, write_durable};

use crate::{keyring, private::read_bounded};

/// The storage of secrets and logins, as the user chose it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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
