//! The streams between processes. Those of a child are pipes without a name, which threads of the runtime
//! read and write.

use std::io::{self, IoSlice};

use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt as _},
    sync::Mutex,
};

/// The readable end of a stream from another process.
pub type PipeReader = Box<dyn AsyncRead + Send + Unpin>;

/// The writable end of a stream to another process. Only the task of its owner writes to it.
pub struct PipeWriter {
    output: Mutex<Box<dyn AsyncWrite + Send + Unpin>>,
    /// True if written bytes leave our process only with a flush.
    is_buffered: bool,
}

impl std::fmt::Debug for PipeWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PipeWriter").finish_non_exhaustive()
    }
}

impl PipeWriter {
    /// Wraps the input of a child, which a thread writes.
    pub(super) fn to_child(input: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        Self {
            output: Mutex::new(Box::new(input)),
            is_buffered: true,
        }
    }

    /// Wraps a pipe with a name, whose flush would wait until the peer has read everything.
    pub fn to_named(output: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        Self {
            output: Mutex::new(Box::new(output)),
            is_buffered: false,
        }
    }

    /// Fails with `WouldBlock`: a write may wait.
    pub fn try_write(&self, _: &[IoSlice<'_>]) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// Writes a part of the bytes.
    pub async fn write_some(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut output = self.output.lock().await;
        let count = output.write(bytes).await?;
        if self.is_buffered {
            output.flush().await?;
        }
        Ok(count)
    }

    /// Returns `None`: the system does not tell how many bytes are unread.
    pub fn left_unread(&self) -> Option<u64> {
        None
    }
}

/// Returns `None`: a thread reads our stdin.
pub fn stdin() -> Option<PipeReader> {
    None
}

/// Returns `None`: a thread writes to our stdout.
pub fn stdout(_: usize) -> Option<PipeWriter> {
    None
}
