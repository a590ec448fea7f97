//! The socket of a daemon, and whether it is still found at its path.

use std::{
    fs, io,
    os::{
        fd::AsFd as _,
        unix::{fs::MetadataExt as _, net::UnixListener},
    },
    path::{Path, PathBuf},
};

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
    /// Device and number: another daemon's socket has our path, but not these. None where there was
    /// no file any more.
    id: Option<(u64, u64)>,
}

impl BoundSocket {
    /// A socket that is bound; its path is its own until another daemon takes it.
    pub fn new(listener: UnixListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let path = address.as_pathname().map(Path::to_owned);
        let path = path.ok_or_else(|| io::Error::other("the socket has no path"))?;
        let id = read_id(&path);
        let file = SocketFile { path, id };
        Ok(Self { listener, file })
    }

    /// The socket that the process that started us left on our stdin; none where there is something
    /// else.
    pub fn on_stdin() -> Option<Self> {
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
    /// Whether the path leads to what it led to when the socket was bound.
    pub(crate) fn is_unchanged(&self) -> bool {
        read_id(&self.path) == self.id
    }

    /// Whether clients that come by the path find this socket, and no other's.
    pub(crate) fn is_there(&self) -> bool {
        self.id.is_some() && self.is_unchanged()
    }
}

fn read_id(path: &Path) -> Option<(u64, u64)> {
    let about = fs::symlink_metadata(path).ok()?;
    Some((about.dev(), about.ino()))
}
