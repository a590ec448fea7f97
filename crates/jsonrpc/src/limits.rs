//! Every bound of this room, with its unit and its reason.

/// A line longer than this is not kept: its call fails, the connection lives on. Servers were
/// seen to answer with 2 MB in one line; some hundred times that is a fault, not an answer.
pub const LINE_BYTES_MAX: usize = 256 * 1024 * 1024;

/// The room that a reader has for short lines. A longer one gets more for as long as it is read.
pub(crate) const READ_BYTES: usize = 16 * 1024;

/// With less free room than this a reader gets more. Far less than a read, since lines that were read
/// and are still in use keep their room: it would get more for every line.
pub(crate) const ROOM_BYTES_MIN: usize = 8 * 1024;

/// Bytes waiting for a peer that does not read. A sender waits past this, within its deadline.
pub(crate) const OUTBOX_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Bytes kept of an over-long line, to find out which request it answers.
pub(crate) const HEAD_BYTES: usize = 4 * 1024;

/// A line shorter than this is put together before it is written: the reader is woken once, by
/// the whole of it.
pub(crate) const JOINED_BYTES_MAX: usize = 16 * 1024;

/// Characters of an answer that is no JSON-RPC error, shown in its place.
pub(crate) const UNREADABLE_CHARS_MAX: usize = 500;
