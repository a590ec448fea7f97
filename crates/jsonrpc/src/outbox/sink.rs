//! The streams to which lines are written.

use std::{
    fmt,
    io::{self, IoSlice, Write as _},
    os::{fd::OwnedFd, unix::net::UnixStream},
};

use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _},
    net::unix::pipe,
    sync::Mutex,
};

/// A stream to which lines are written. Any task writes to pipes and sockets without waiting; only
/// the task of the outbox writes to other streams.
pub enum Sink {
    /// A pipe, such as the standard input of a child.
    Pipe(pipe::Sender),
    /// A socket, which carries both directions. It is non-blocking, and is registered with the
    /// event loop only while a writer has to wait: the system reports free space each time the peer
    /// reads, which would wake us after every line.
    Socket(UnixStream),
    /// Any other stream.
    Stream(Mutex<Box<dyn AsyncWrite + Send + Unpin>>),
}

/// Returns both halves of a socket. The event loop watches the socket only for input.
pub fn split_socket(socket: UnixStream) -> io::Result<(pipe::Receiver, Sink)> {
    socket.set_nonblocking(true)?;
    let input = OwnedFd::from(socket.try_clone()?);
    // The pipe receiver reads from other descriptors as well.
    let input = pipe::Receiver::from_owned_fd_unchecked(input)?;
    Ok((input, Sink::Socket(socket)))
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pipe(_) => "Pipe",
            Self::Socket(_) => "Socket",
            Self::Stream(_) => "Stream",
        })
    }
}

impl Sink {
    /// Creates a sink from any stream.
    pub fn stream(output: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        Self::Stream(Mutex::new(Box::new(output)))
    }

    pub(super) fn try_write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Pipe(pipe) => pipe.try_write_vectored(slices),
            Self::Socket(socket) => (&*socket).write_vectored(slices),
            Self::Stream(_) => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    pub(super) async fn write_some(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Pipe(pipe) => pipe.writable().await?,
            Self::Socket(socket) => wait_for_room(socket).await?,
            Self::Stream(output) => {
                let mut output = output.lock().await;
                output.write_all(bytes).await?;
                output.flush().await?;
                return Ok(bytes.len());
            }
        }
        match self.try_write(&[IoSlice::new(bytes)]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            other => other,
        }
    }
}

/// Waits until a socket is writable. Registers the socket for each wait, because waits are rare.
async fn wait_for_room(socket: &UnixStream) -> io::Result<()> {
    let watched = OwnedFd::from(socket.try_clone()?);
    pipe::Sender::from_owned_fd_unchecked(watched)?
        .writable()
        .await
}
