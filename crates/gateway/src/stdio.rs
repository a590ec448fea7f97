//! Our own stdin and stdout, without a thread between them and the event loop where the system
//! allows it.

use std::{
    fs::File,
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::{
            fs::{FileTypeExt as _, OpenOptionsExt as _},
            net::UnixStream,
        },
    },
};

use jsonrpc::{Sink, split_socket};
use tokio::{io::AsyncRead, net::unix::pipe};

/// The bytes that the system is asked to buffer towards the client, so that a large answer is
/// handed over in few steps. Best effort.
const PIPE_BYTES: usize = 1024 * 1024;

/// The bytes that a client sends.
pub type Input = Box<dyn AsyncRead + Send + Unpin>;

/// The client's messages. Clients give us a pipe (most) or a socket (Node); anything else, such
/// as a file or a terminal, is read through a thread.
pub fn input() -> Input {
    match kind(io::stdin()) {
        StreamKind::Pipe(file) => match pipe::Receiver::from_file(file) {
            Ok(pipe) => Box::new(pipe),
            Err(_) => Box::new(tokio::io::stdin()),
        },
        StreamKind::Socket(socket) => match split_socket(socket) {
            Ok((input, _)) => Box::new(input),
            Err(_) => Box::new(tokio::io::stdin()),
        },
        StreamKind::Other => Box::new(tokio::io::stdin()),
    }
}

/// The way back, likewise.
pub fn output() -> Sink {
    match kind(io::stdout()) {
        StreamKind::Pipe(file) => {
            let _ = rustix::pipe::fcntl_setpipe_size(&file, PIPE_BYTES);
            match pipe::Sender::from_file(file) {
                Ok(pipe) => Sink::Pipe(pipe),
                Err(_) => Sink::stream(tokio::io::stdout()),
            }
        }
        StreamKind::Socket(socket) => Sink::Socket(socket),
        StreamKind::Other => Sink::stream(tokio::io::stdout()),
    }
}

enum StreamKind {
    Pipe(File),
    Socket(UnixStream),
    Other,
}

fn kind(stream: impl AsFd) -> StreamKind {
    let Ok(copy) = stream.as_fd().try_clone_to_owned() else {
        return StreamKind::Other;
    };
    let file = File::from(copy);
    let Ok(about) = file.metadata() else {
        return StreamKind::Other;
    };
    if about.file_type().is_fifo() {
        reopened(&stream).map_or(StreamKind::Other, StreamKind::Pipe)
    } else if about.file_type().is_socket() {
        socket(file).map_or(StreamKind::Other, StreamKind::Socket)
    } else {
        StreamKind::Other
    }
}

/// Reopens the pipe: `O_NONBLOCK` then does not affect others that hold the same end, such as a
/// shell's `2>&1`. If this fails a thread does the work.
fn reopened(stream: impl AsFd) -> io::Result<File> {
    use std::os::fd::AsRawFd as _;
    let number = stream.as_fd().as_raw_fd();
    let is_input = number == 0;
    File::options()
        .read(is_input)
        .write(!is_input)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
        .open(format!("/proc/self/fd/{number}"))
}

fn socket(file: File) -> io::Result<UnixStream> {
    let socket = UnixStream::from(OwnedFd::from(file));
    socket.set_nonblocking(true)?;
    Ok(socket)
}
