//! The limits of this crate.

/// The longest line, in bytes. A longer one is discarded: its call fails, and the connection continues.
/// Real servers send up to 2 MB in one line.
pub const LINE_BYTES_MAX: usize = 256 * 1024 * 1024;

/// The buffer of a reader, in bytes. It grows while a longer line is read.
pub(crate) const READ_BYTES: usize = 16 * 1024;

/// The free room, in bytes, below which the buffer grows. It is less than a read, because lines that are
/// still in use occupy the buffer: otherwise it would grow for every line.
pub(crate) const ROOM_BYTES_MIN: usize = 8 * 1024;

/// The most bytes that are queued for a peer that does not read. Beyond it, senders wait until their
/// deadline.
pub(crate) const OUTBOX_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The bytes that are kept of a discarded line, to find the id of its request.
pub(crate) const HEAD_BYTES: usize = 4 * 1024;

/// A line of at most this many bytes is concatenated before it is written, so that the reader is woken
/// only once.
pub(crate) const JOINED_BYTES_MAX: usize = 16 * 1024;

/// The most characters that are shown of an invalid JSON-RPC error.
pub(crate) const UNREADABLE_CHARS_MAX: usize = 500;
