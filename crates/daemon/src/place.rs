//! The folder of a daemon: private, with its socket.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    identity::Identity,
    owner::{OwnerDaemon, read_owner},
    socket::{ADDRESS_BYTES_MAX, list_folders},
};
use files::private_folder;

const SOCKET: &str = "sock";

/// The folder of the daemons of one configuration: usually one, more while an older one is busy.
#[derive(Debug, Clone)]
pub struct DaemonFolder {
    folder: PathBuf,
    /// The state folder of the configuration, and the configuration file.
    owned: Option<(PathBuf, PathBuf)>,
}

impl DaemonFolder {
    /// Returns the first of the usual folders that can be private. `runtime_dir` is
    /// `$XDG_RUNTIME_DIR`; `state_dir` is the state folder of the configuration.
    pub fn of(
        identity: &Identity,
        runtime_dir: Option<PathBuf>,
        state_dir: Option<PathBuf>,
    ) -> io::Result<Self> {
        let mut last = io::Error::other("no folder for a socket");
        for base in list_folders(runtime_dir) {
            match Self::at(&base, &identity.id) {
                Ok(place) => {
                    let config = identity.wanted.config.clone();
                    let owned = state_dir.map(|folder| (folder, config));
                    return Ok(Self { owned, ..place });
                }
                Err(error) => {
                    last = io::Error::new(error.kind(), format!("{}: {error}", base.display()));
                }
            }
        }
        Err(last)
    }

    fn at(base: &Path, id: &str) -> io::Result<Self> {
        private_folder(base)?;
        let folder = base.join(id);
        private_folder(&folder)?;
        let place = Self {
            folder,
            owned: None,
        };
        let longest = place.socket(Some("00000000"));
        if longest.as_os_str().len() > ADDRESS_BYTES_MAX {
            let why = format!("the path of a socket has {ADDRESS_BYTES_MAX} bytes at most");
            return Err(io::Error::new(io::ErrorKind::InvalidFilename, why));
        }
        Ok(place)
    }

    /// The path of the socket; a variant is for clients of another build.
    pub fn socket(&self, variant: Option<&str>) -> PathBuf {
        self.folder.join(match variant {
            None => SOCKET.to_owned(),
            Some(variant) => format!("{SOCKET}-{variant}"),
        })
    }

    /// Returns the daemon that last owned the state folder, if it is of this configuration.
    pub fn find_owner(&self) -> Option<OwnerDaemon> {
        let (state_dir, config) = self.owned.as_ref()?;
        read_owner(state_dir)?.daemon_of(config)
    }

    /// Returns the existing sockets, the main one first; then that of the daemon that owns the state folder,
    /// if it is at another place.
    pub fn sockets(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.path());
        let is_socket = |path: &PathBuf| {
            let name = path.file_name().and_then(|it| it.to_str());
            name.is_some_and(|name| name.starts_with(SOCKET))
        };
        let mut sockets: Vec<_> = names.filter(is_socket).collect();
        sockets.sort();
        let owner = self.find_owner().map(|owner| owner.socket);
        let elsewhere = owner.filter(|it| !sockets.contains(it) && it.exists());
        sockets.extend(elsewhere);
        sockets
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    };

    use super::DaemonFolder;
    use crate::socket::{START_WAIT, lock};

    #[test]
    fn a_place_is_ours_alone_and_short_enough() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().join("run");
        let place = DaemonFolder::at(&base, "0123456789ab").unwrap();
        let socket = place.socket(None);
        let mode = fs::metadata(socket.parent().unwrap()).unwrap().mode();
        assert_eq!(mode & 0o777, 0o700);
        drop(lock(&socket, START_WAIT).unwrap());
        assert!(place.sockets().is_empty());

        fs::set_permissions(&base, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(DaemonFolder::at(&base, "0123456789ab").is_err());
        let deep = folder.path().join("x".repeat(100));
        assert!(DaemonFolder::at(&deep, "0123456789ab").is_err());
    }

    #[test]
    fn a_link_is_no_place() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/tmp", &link).unwrap();
        assert!(DaemonFolder::at(&link, "0123456789ab").is_err());
    }
}
