//! Writes lines to a peer, without blocking other senders.

mod sink;
#[cfg(test)]
#[cfg(unix)]
mod tests;

use std::{
    collections::VecDeque,
    io::{self, IoSlice},
    sync::Arc,
};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

pub use self::sink::Sink;
use crate::{
    limits::{JOINED_BYTES_MAX, OUTBOX_BYTES_MAX},
    one_line::{Outgoing, check_outgoing},
};

/// The reason why a line was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The peer no longer reads.
    #[error("the other side closed the connection")]
    Closed,
    /// The message has a raw line break before its end, which is a mistake of the sender. The connection
    /// stays open.
    #[error("the message has several lines, so it was not sent")]
    SeveralLines,
}

/// The output queue to one peer, shared by all its senders.
///
/// A line is written at once, in the sender's own task, if the queue is empty and the pipe has room; the
/// rest is queued and written by a task of the outbox. A line is sent completely or not at all, even if
/// its sender is dropped. A response with a raw line break before its end is replaced by an internal
/// error, and any other such message is refused.
#[derive(Debug)]
pub struct Outbox {
    queue: Mutex<Queue>,
    work: Notify,
    room: Notify,
}

#[derive(Debug)]
struct Queue {
    parts: VecDeque<Bytes>,
    bytes: usize,
    /// The total number of bytes of all lines so far.
    taken: u64,
    /// The number of bytes that the peer read; known only for a pipe without a reader.
    read: Option<u64>,
    /// `None` once closed.
    sink: Option<Arc<Sink>>,
    closing: bool,
    /// The buffer in which the parts of a short line are joined.
    joined: Vec<u8>,
}

impl Outbox {
    /// Starts the outbox's task on the current runtime.
    pub fn new(sink: Sink) -> Arc<Self> {
        let outbox = Arc::new(Self {
            queue: Mutex::new(Queue {
                parts: VecDeque::new(),
                bytes: 0,
                taken: 0,
                read: None,
                sink: Some(Arc::new(sink)),
                closing: false,
                joined: Vec::new(),
            }),
            work: Notify::new(),
            room: Notify::new(),
        });
        tokio::spawn(Arc::clone(&outbox).run());
        outbox
    }

    /// Sends one line, given in parts; waits while too much is queued. After an error, the line was not
    /// sent, or not completely.
    pub async fn send(&self, parts: &[Bytes]) -> Result<(), SendError> {
        self.send_after(parts).await.map(|_| ())
    }

    /// Sends one line, and returns the number of bytes that were sent before it, for
    /// [`Outbox::is_unread`].
    pub async fn send_after(&self, parts: &[Bytes]) -> Result<u64, SendError> {
        self.room().await;
        self.push(parts)
    }

    /// Sends one line, or drops it if too much is queued. For notifications, for which no caller
    /// waits.
    pub fn offer(&self, parts: &[Bytes]) -> bool {
        let has_room = self.queue.lock().bytes < OUTBOX_BYTES_MAX;
        has_room && self.push(parts).is_ok()
    }

    /// Sends one line regardless of the length of the queue, for callers that waited for
    /// [`Outbox::room`].
    pub fn put(&self, parts: &[Bytes]) -> Result<(), SendError> {
        self.push(parts).map(|_| ())
    }

    /// Returns true if it is certain that the line sent after this many bytes was not read and never
    /// will be: the other end of the pipe is closed, and the line is still in its buffer.
    pub fn is_unread(&self, before: u64) -> bool {
        let queue = self.queue.lock();
        queue
            .read
            .or_else(|| queue.find_read())
            .is_some_and(|read| read <= before)
    }

    /// Returns true if the peer disconnected, or the outbox was closed and is empty.
    pub fn is_gone(&self) -> bool {
        self.queue.lock().sink.is_none()
    }

    /// Waits until the queue accepts a line without waiting.
    pub async fn room(&self) {
        self.wait_until(|queue| queue.bytes < OUTBOX_BYTES_MAX)
            .await;
    }

    /// Waits until the peer disconnected, or the outbox was closed and is empty.
    pub async fn gone(&self) {
        self.wait_until(|queue| queue.sink.is_none()).await;
    }

    /// Closes the outbox for new lines. Queued lines are still written, then the stream is closed.
    pub fn close(&self) {
        let mut queue = self.queue.lock();
        queue.closing = true;
        if queue.parts.is_empty() {
            queue.drop_sink();
        }
        drop(queue);
        self.wake_all();
    }

    /// Closes the stream now and discards queued lines.
    pub fn give_up(&self) {
        self.queue.lock().give_up();
        self.wake_all();
    }

    /// Waits until everything was written or the stream was closed early.
    pub async fn drained(&self) {
        self.wait_until(|queue| queue.bytes == 0).await;
    }

    async fn wait_until(&self, is_true: impl Fn(&Queue) -> bool) {
        loop {
            let change = self.room.notified();
            if is_true(&self.queue.lock()) {
                return;
            }
            change.await;
        }
    }

    fn push(&self, parts: &[Bytes]) -> Result<u64, SendError> {
        match check_outgoing(parts) {
            Outgoing::OneLine => self.push_line(parts),
            Outgoing::Replaced(error) => self.push_line(&[error]),
            Outgoing::Refused => Err(SendError::SeveralLines),
        }
    }

    fn push_line(&self, parts: &[Bytes]) -> Result<u64, SendError> {
        let mut guard = self.queue.lock();
        let queue = &mut *guard;
        let sink = queue.sink.as_ref().filter(|_| !queue.closing);
        let sink = sink.ok_or(SendError::Closed)?;
        let before = queue.taken;
        let mut written = 0;
        let joined = &mut queue.joined;
        if queue.parts.is_empty() && write_now(sink, parts, joined, &mut written).is_err() {
            queue.taken += written as u64;
            drop(guard);
            self.give_up();
            return Err(SendError::Closed);
        }
        queue.add_rest(parts, written);
        let waits = !queue.parts.is_empty();
        drop(guard);
        if waits {
            self.work.notify_one();
        }
        Ok(before)
    }

    async fn run(self: Arc<Self>) {
        loop {
            let work = self.work.notified();
            let next = {
                let queue = self.queue.lock();
                let Some(sink) = queue.sink.clone() else {
                    return;
                };
                queue.parts.front().cloned().map(|part| (sink, part))
            };
            match next {
                None => work.await,
                Some((sink, part)) => match sink.write_some(&part).await {
                    Ok(written) => self.written(written),
                    Err(_) => self.give_up(),
                },
            }
        }
    }

    fn written(&self, bytes: usize) {
        let mut queue = self.queue.lock();
        queue.take(bytes);
        if queue.parts.is_empty() && queue.closing {
            queue.drop_sink();
        }
        drop(queue);
        self.room.notify_waiters();
    }

    fn wake_all(&self) {
        self.work.notify_one();
        self.room.notify_waiters();
    }
}

impl Queue {
    /// Queues the part of a line after its first `written` bytes.
    fn add_rest(&mut self, parts: &[Bytes], mut written: usize) {
        for part in parts {
            let passed = written.min(part.len());
            written -= passed;
            self.taken += part.len() as u64;
            if passed < part.len() {
                self.bytes += part.len() - passed;
                self.parts.push_back(part.slice(passed..));
            }
        }
    }

    /// Removes the written bytes from the first part. A write may complete after the queue was
    /// discarded: then the queue is empty.
    fn take(&mut self, bytes: usize) {
        let Some(front) = self.parts.front_mut() else {
            return;
        };
        let _ = front.split_to(bytes);
        if front.is_empty() {
            self.parts.pop_front();
        }
        self.bytes -= bytes;
    }

    fn give_up(&mut self) {
        self.drop_sink();
        self.parts.clear();
        self.bytes = 0;
    }

    /// Drops the sink. Determines first how much the peer read, since the pipe is closed
    /// afterwards.
    fn drop_sink(&mut self) {
        self.read = self.read.or_else(|| self.find_read());
        self.sink = None;
    }

    fn find_read(&self) -> Option<u64> {
        let Sink::Pipe(pipe) = &**self.sink.as_ref()? else {
            return None;
        };
        let written = self.taken - self.bytes as u64;
        Some(written.saturating_sub(pipe.left_unread()?))
    }
}

/// Writes as much of a line as the peer accepts now. `written` counts the written bytes, even if an
/// error is returned.
fn write_now(
    sink: &Sink,
    parts: &[Bytes],
    joined: &mut Vec<u8>,
    written: &mut usize,
) -> io::Result<()> {
    let whole: usize = parts.iter().map(Bytes::len).sum();
    let (mut one, mut several): (_, Vec<_>);
    let mut rest: &mut [IoSlice<'_>] = if whole <= JOINED_BYTES_MAX {
        joined.clear();
        for part in parts {
            joined.extend_from_slice(part);
        }
        one = [IoSlice::new(joined)];
        &mut one
    } else {
        several = parts.iter().map(|part| IoSlice::new(part)).collect();
        &mut several
    };
    while *written < whole {
        match sink.try_write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                *written += count;
                IoSlice::advance_slices(&mut rest, count);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
