//! The limits of this crate.

/// The maximum length of a line, in bytes. A longer line is discarded: its call fails, and the
/// connection continues. Real servers send up to 2 MB in one line.
pub const LINE_BYTES_MAX: usize = 256 * 1024 * 1024;

/// The size of a reader's buffer, in bytes. The buffer grows while a longer line is read.
pub(crate) const READ_BYTES: usize = 16 * 1024;

/// The free space, in bytes, below which the buffer grows. It is smaller than one read, because
/// lines that are still in use occupy the buffer: otherwise the buffer would grow for every line.
pub(crate) const ROOM_BYTES_MIN: usize = 8 * 1024;

/// The maximum number of bytes queued for a peer that does not read. Above it, senders wait until
/// their deadline.
pub(crate) const OUTBOX_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The number of bytes kept of a discarded line, to find the id of its request.
pub(crate) const HEAD_BYTES: usize = 4 * 1024;

/// A line of at most this many bytes is concatenated before it is written, so that the reader is woken
/// only once.
pub(crate) const JOINED_BYTES_MAX: usize = 16 * 1024;

/// The maximum number of characters quoted from an invalid JSON-RPC error.
pub(crate) const UNREADABLE_CHARS_MAX: usize = 500;
