//! The limits of one reading.

use std::time::Duration;

/// The default timeout of a reading, including the wait for its turn: the same as that of a call of
/// any server.
pub const LIMIT_DEFAULT: Duration = Duration::from_mins(1);

/// The time limit of a reading process: a model waits for it, and a longer run is a mistake in a
/// pattern.
pub(super) const TIME_MAX: Duration = Duration::from_secs(10);

/// The time limit of a search through the whole result, which reports its matches shortly before.
pub(super) const SEARCH_TIME_MAX: Duration = Duration::from_secs(6);

/// The memory of the process, in bytes: JSON takes a multiple of its text.
pub(super) const MEMORY_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;

/// The longest answer, in bytes: it is held in memory here.
pub(super) const ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;

/// The longest query, in bytes of JSON; no real query is longer.
pub(super) const QUERY_BYTES_MAX: usize = 96 * 1024;

/// The longest answer of one search to a person who requests all of it, in bytes: encoded as JSON it
/// is still within the longest answer.
pub(super) const READING_BYTES_MAX: usize = ANSWER_BYTES_MAX / 4;

pub(super) fn too_long() -> String {
    let mib = ANSWER_BYTES_MAX / (1024 * 1024);
    format!("its output exceeds {mib} MiB; narrow it")
}
