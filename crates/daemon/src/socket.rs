//! The socket of a daemon, and a check that it is still at its path.

mod hand_over;
mod lock;
#[cfg(unix)]
mod pass;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use files::{FileId, private_folder};
use parking_lot::Mutex;

pub(crate) use self::hand_over::HandOver;
pub use self::lock::{START_WAIT, lock};
use self::system::path_of_listener;
pub(crate) use self::system::{
    ADDRESS_BYTES_MAX, InputEnd, Listener, PASSES_LISTENERS, ReportOutput, accept, hold,
    into_stream, is_ours, list_folders, listen, read_report, receive_listener, send_listener,
    split, start,
};
pub use self::system::{BlockingListener, BlockingStream, HeldStream, Stream, bind, connect};
#[cfg(unix)]
use self::unix as system;
#[cfg(windows)]
use self::windows as system;

/// The socket a daemon listens on, and its file.
#[derive(Debug)]
pub struct BoundSocket {
    pub(crate) listener: BlockingListener,
    pub(crate) file: SocketFile,
}

/// The file of a socket as it was when it was bound.
#[derive(Debug)]
pub(crate) struct SocketFile {
    pub(crate) path: PathBuf,
    /// Another daemon's socket may have our path, but not this identity. None if the file was already
    /// removed.
    id: Mutex<Option<FileId>>,
}

impl BoundSocket {
    /// Wraps a bound socket; another daemon may take its path later.
    pub fn new(listener: BlockingListener) -> io::Result<Self> {
        let path = path_of_listener(&listener);
        let path = path.ok_or_else(|| io::Error::other("the socket has no path"))?;
        let id = Mutex::new(FileId::of(&path).ok());
        let file = SocketFile { path, id };
        Ok(Self { listener, file })
    }

    /// Returns the path at which clients connect.
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// Returns the socket that our parent process passed as stdin; none if stdin does not listen.
    pub fn from_stdin() -> Option<Self> {
        Self::new(system::take_from_stdin()?).ok()
    }
}

impl SocketFile {
    /// Returns true if the path leads to the same file as when the socket was bound.
    pub(crate) fn is_unchanged(&self) -> bool {
        FileId::of(&self.path).ok() == *self.id.lock()
    }

    /// Returns true if clients that connect to the path reach this socket, and no other daemon's.
    pub(crate) fn is_there(&self) -> bool {
        self.id.lock().is_some() && self.is_unchanged()
    }

    /// Binds the socket again after its file was removed. None if another daemon has the path.
    pub(crate) fn bind_again(&self) -> io::Result<Option<BlockingListener>> {
        let folders = self.path.ancestors().skip(1).take(2);
        for folder in folders.collect::<Vec<_>>().into_iter().rev() {
            private_folder(folder).map_err(io::Error::other)?;
        }
        // Runs on the thread of the event loop, which must not block.
        let _lock = lock(&self.path, Duration::ZERO)?;
        if FileId::of(&self.path).is_ok() {
            return Ok(None);
        }
        let listener = bind(&self.path)?;
        *self.id.lock() = FileId::of(&self.path).ok();
        Ok(Some(listener))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

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
        assert!(connect(&path).unwrap().is_some());

        let _other = bind(&path).unwrap();
        assert!(file.bind_again().unwrap().is_none() && !file.is_there());
    }
}
