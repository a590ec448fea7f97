//! The streams to which lines are written.

use std::{
    fmt,
    io::{self, IoSlice},
};

use processes::pipes::PipeWriter;
use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _},
    sync::Mutex,
};

/// A stream to which lines are written. Any task writes to pipes without waiting; only the task of
/// the outbox writes to other streams.
pub enum Sink {
    /// A pipe or a socket to another process.
    Pipe(PipeWriter),
    /// Any other stream.
    Stream(Mutex<Box<dyn AsyncWrite + Send + Unpin>>),
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pipe(_) => "Pipe",
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
            Self::Pipe(pipe) => pipe.try_write(slices),
            Self::Stream(_) => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    pub(super) async fn write_some(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Pipe(pipe) => pipe.write_some(bytes).await,
            Self::Stream(output) => {
                let mut output = output.lock().await;
                output.write_all(bytes).await?;
                output.flush().await?;
                Ok(bytes.len())
            }
        }
    }
}
