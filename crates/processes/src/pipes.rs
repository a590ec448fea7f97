//! The streams between processes: the pipes of a child, our own stdin and stdout, and both directions
//! of a socket. They are read and written without a thread, where the system allows it.

use std::{
    fs::File,
    io::{self, IoSlice, Write as _},
    os::{
        fd::{AsFd, AsRawFd as _, OwnedFd},
        unix::{
            fs::{FileTypeExt as _, OpenOptionsExt as _},
            net::UnixStream,
        },
    },
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::OFlags,
    io::ioctl_fionread,
};
use tokio::net::unix::pipe;

/// The readable end of a stream from another process.
pub type PipeReader = pipe::Receiver;

/// The writable end of a stream to another process. It never blocks.
#[derive(Debug)]
pub enum PipeWriter {
    /// A pipe, such as the standard input of a child.
    Pipe(pipe::Sender),
    /// A socket, which carries both directions. It is registered with the event loop only while a
    /// writer has to wait: the system reports free space each time the peer reads, which would wake us
    /// after every line.
    Socket(UnixStream),
}

impl PipeWriter {
    /// Writes as much as there is room for. Fails with `WouldBlock` if there is none.
    pub fn try_write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Pipe(pipe) => pipe.try_write_vectored(slices),
            Self::Socket(socket) => (&*socket).write_vectored(slices),
        }
    }

    /// Waits until there is room, and writes a part of the bytes; perhaps none.
    pub async fn write_some(&self, bytes: &[u8]) -> io::Result<usize> {
        self.wait_for_room().await?;
        match self.try_write(&[IoSlice::new(bytes)]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            other => other,
        }
    }

    /// Waits until there is room. A socket is registered for each wait, because waits are rare.
    async fn wait_for_room(&self) -> io::Result<()> {
        match self {
            Self::Pipe(pipe) => pipe.writable().await,
            Self::Socket(socket) => {
                let watched = OwnedFd::from(socket.try_clone()?);
                let watched = pipe::Sender::from_owned_fd_unchecked(watched)?;
                watched.writable().await
            }
        }
    }

    /// Returns the number of unread bytes in a pipe that has no reader any more; `None` while a reader
    /// exists, and where the system does not tell: for a socket, and on any system but Linux.
    pub fn left_unread(&self) -> Option<u64> {
        let Self::Pipe(pipe) = self else {
            return None;
        };
        if !cfg!(target_os = "linux") {
            // The number that others return is that of the reading end alone.
            return None;
        }
        let mut ends = [PollFd::new(pipe, PollFlags::OUT)];
        poll(&mut ends, Some(&Timespec::default())).ok()?;
        let has_no_reader = ends[0].revents().contains(PollFlags::ERR);
        has_no_reader.then(|| ioctl_fionread(pipe).ok()).flatten()
    }
}

/// Returns both directions of a socket. The event loop watches the socket only for input.
pub fn split_socket(socket: UnixStream) -> io::Result<(PipeReader, PipeWriter)> {
    socket.set_nonblocking(true)?;
    let input = OwnedFd::from(socket.try_clone()?);
    // The pipe receiver reads from other descriptors as well.
    let input = pipe::Receiver::from_owned_fd_unchecked(input)?;
    Ok((input, PipeWriter::Socket(socket)))
}

/// Returns our stdin if it is a pipe or a socket, as most clients give us; `None` for anything else,
/// such as a file or a terminal, which only a thread can read.
pub fn stdin() -> Option<PipeReader> {
    match kind(io::stdin())? {
        // A named pipe that was opened again after its last writer left never reports its end.
        StreamKind::Pipe(_) if has_no_writer(io::stdin()) => None,
        StreamKind::Pipe(file) => pipe::Receiver::from_file(file).ok(),
        StreamKind::Socket(socket) => Some(split_socket(socket).ok()?.0),
    }
}

fn has_no_writer(pipe: impl AsFd) -> bool {
    let mut ends = [PollFd::new(&pipe, PollFlags::IN)];
    let polled = poll(&mut ends, Some(&Timespec::default()));
    polled.is_ok() && ends[0].revents().contains(PollFlags::HUP)
}

/// Returns our stdout if it is a pipe or a socket. Asks the system to buffer this many bytes in a pipe.
pub fn stdout(buffer_bytes: usize) -> Option<PipeWriter> {
    match kind(io::stdout())? {
        StreamKind::Pipe(file) => {
            enlarge(&file, buffer_bytes);
            Some(PipeWriter::Pipe(pipe::Sender::from_file(file).ok()?))
        }
        StreamKind::Socket(socket) => Some(PipeWriter::Socket(socket)),
    }
}

/// Asks the system to buffer this many bytes in a pipe, so that a large message is passed on in few
/// steps. Best effort: only Linux can.
pub(crate) fn enlarge(pipe: impl AsFd, bytes: usize) {
    #[cfg(target_os = "linux")]
    let _ = rustix::pipe::fcntl_setpipe_size(&pipe, bytes);
    #[cfg(not(target_os = "linux"))]
    let _ = (pipe, bytes);
}

enum StreamKind {
    Pipe(File),
    Socket(UnixStream),
}

fn kind(stream: impl AsFd) -> Option<StreamKind> {
    let file = File::from(stream.as_fd().try_clone_to_owned().ok()?);
    let kind = file.metadata().ok()?.file_type();
    if kind.is_fifo() {
        reopen(stream).ok().map(StreamKind::Pipe)
    } else if kind.is_socket() {
        let socket = UnixStream::from(OwnedFd::from(file));
        socket.set_nonblocking(true).ok()?;
        Some(StreamKind::Socket(socket))
    } else {
        None
    }
}

/// Reopens the pipe: `O_NONBLOCK` then does not affect others that hold the same end, such as a
/// shell's `2>&1`. Only Linux can; if this fails a thread does the work.
fn reopen(stream: impl AsFd) -> io::Result<File> {
    let number = stream.as_fd().as_raw_fd();
    let is_input = number == 0;
    File::options()
        .read(is_input)
        .write(!is_input)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(format!("/proc/self/fd/{number}"))
}
