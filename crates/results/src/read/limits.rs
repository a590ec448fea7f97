//! Bounds of one reading.

use std::time::Duration;

/// The time that a reading may take with the wait for its turn, where the call does not say: as
/// long as a call of any server does.
pub const LIMIT_DEFAULT: Duration = Duration::from_mins(1);

/// The time that a process that reads may run: a model waits for it, and what takes longer is a
/// mistake in a pattern.
pub(super) const TIME_MAX: Duration = Duration::from_secs(10);

/// The same for a search through the whole result, which tells what it has found until shortly
/// before.
pub(super) const SEARCH_TIME_MAX: Duration = Duration::from_secs(6);

/// The memory of the process, in bytes: JSON takes a multiple of its text.
pub(super) const MEMORY_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;

/// The longest answer, in bytes: it is held in memory here.
pub(super) const ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;

/// The longest question, in bytes of JSON: nobody means more.
pub(super) const QUESTION_BYTES_MAX: usize = 96 * 1024;

/// The longest answer of one search to a person who wants it all, in bytes: as JSON it is still an
/// answer.
pub(super) const READING_BYTES_MAX: usize = ANSWER_BYTES_MAX / 4;

/// The text about an answer that is too long.
pub(super) fn too_long() -> String {
    let mib = ANSWER_BYTES_MAX / (1024 * 1024);
    format!("it answers more than {mib} MiB; narrow it")
}
