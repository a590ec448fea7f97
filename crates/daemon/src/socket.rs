//! The socket of a daemon, and a check that it is still at its path.

use std::{
    fs, io,
    os::{
        fd::AsFd as _,
        unix::{fs::MetadataExt as _, net::UnixListener},
    },
    path::{Path, PathBuf},
    time::Duration,
};

use files::private_folder;
use parking_lot::Mutex;

use crate::{launch::bind, place};

/// The socket a daemon listens on, and its file.
#[derive(Debug)]
pub struct BoundSocket {
    pub(crate) listener: UnixListener,
    pub(crate) file: SocketFile,
}

/// The file of a socket as it was when it was bound.
#[derive(Debug)]
pub(crate) struct SocketFile {
    pub(crate) path: PathBuf,
    /// Device and inode: another daemon's socket may have our path, but not these. None if the file
    /// was already removed.
    id: Mutex<Option<(u64, u64)>>,
}

impl BoundSocket {
    /// Wraps a bound socket; another daemon may take its path later.
    pub fn new(listener: UnixListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let path = address.as_pathname().map(Path::to_owned);
        let path = path.ok_or_else(|| io::Error::other("the socket has no path"))?;
        let id = Mutex::new(read_id(&path));
        let file = SocketFile { path, id };
        Ok(Self { listener, file })
    }

    /// Returns the socket that our parent process passed as stdin; none if stdin does not listen.
    pub fn from_stdin() -> Option<Self> {
        let stdin = io::stdin();
        let listens = rustix::net::sockopt::socket_acceptconn(&stdin).unwrap_or(false);
        let socket = stdin
            .as_fd()
            .try_clone_to_owned()
            .ok()
            .filter(|_| listens)?;
        Self::new(UnixListener::from(socket)).ok()
    }
}

impl SocketFile {
    /// Returns true if the path leads to the same file as when the socket was bound.
    pub(crate) fn is_unchanged(&self) -> bool {
        read_id(&self.path) == *self.id.lock()
    }

    /// Returns true if clients that connect to the path reach this socket, and no other daemon's.
    pub(crate) fn is_there(&self) -> bool {
        self.id.lock().is_some() && self.is_unchanged()
    }

    /// Binds the socket again after its file was removed. None if another daemon has the path.
    pub(crate) fn bind_again(&self) -> io::Result<Option<UnixListener>> {
        let folders = self.path.ancestors().skip(1).take(2);
        for folder in folders.collect::<Vec<_>>().into_iter().rev() {
            private_folder(folder).map_err(io::Error::other)?;
        }
        // Runs on the thread of the event loop, which must not block.
        let _lock = place::lock(&self.path, Duration::ZERO)?;
        if read_id(&self.path).is_some() {
            return Ok(None);
        }
        let listener = bind(&self.path)?;
        listener.set_nonblocking(true)?;
        *self.id.lock() = read_id(&self.path);
        Ok(Some(listener))
    }
}

fn read_id(path: &Path) -> Option<(u64, u64)> {
    let about = fs::symlink_metadata(path).ok()?;
    Some((about.dev(), about.ino()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_socket_whose_file_is_gone_is_bound_again_unless_another_has_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("proxy/0123456789ab/sock");
        for folder in [
            path.parent().unwrap().parent().unwrap(),
            path.parent().unwrap(),
        ] {
            private_folder(folder).unwrap();
        }
        let BoundSocket { file, .. } = BoundSocket::new(bind(&path).unwrap()).unwrap();
        assert!(file.is_there());
        fs::remove_dir_all(path.parent().unwrap().parent().unwrap()).unwrap();
        assert!(!file.is_unchanged());
        let listener = file.bind_again().unwrap();
        assert!(listener.is_some() && file.is_there());
        UnixStream::connect(&path).unwrap();

        let _other = bind(&path).unwrap();
        assert!(file.bind_again().unwrap().is_none() && !file.is_there());
    }
}
