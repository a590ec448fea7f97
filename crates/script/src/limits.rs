//! The limits of one script, and the message for each.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

/// The time limit of a script if its caller gives none.
pub const WALL_DEFAULT: Duration = Duration::from_secs(30);

/// The longest time limit that a caller may give; the calls of a long script take time.
pub const WALL_MAX: Duration = Duration::from_mins(10);

/// The longest script, in bytes; handwritten scripts are shorter.
pub const SCRIPT_BYTES_MAX: usize = 256 * 1024;

/// The limit on the engine's processor time: a script spends most of its time waiting.
pub(crate) const PROCESSOR_MAX: Duration = Duration::from_secs(10);

/// The engine's memory, in bytes: twice [`BYTES_IN_MAX`], because a result is held as text and as a value.
pub(crate) const MEMORY_BYTES_MAX: usize = 128 * 1024 * 1024;

/// The address space of the whole process, in bytes: our program, the engine and the parser of the
/// script.
pub(crate) const ADDRESS_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// The engine's stack, in bytes, which limits the depth of function calls.
pub(crate) const STACK_BYTES_MAX: usize = 1024 * 1024;

/// The most tool calls of one script, including those of saved scripts that it calls.
pub const CALLS_MAX: usize = 100;

/// The most scripts that run within each other, including the outermost one.
pub const NESTING_MAX: usize = 3;

/// The most requests other than calls: searches, descriptions, files and pauses.
pub(crate) const QUESTIONS_MAX: usize = 1_000;

/// The most requests that are processed at one time.
pub(crate) const PARALLEL_MAX: usize = 16;

/// The total size of the answers to one script, in bytes: the most that is buffered here until its
/// process reads it.
pub(crate) const BYTES_IN_MAX: usize = 64 * 1024 * 1024;

/// The total size of the messages of one script, in bytes: arguments, log and value. It equals the
/// limit on answers, because scripts pass on what they read. It is the most that is buffered on either
/// side of the pipe.
pub(crate) const BYTES_OUT_MAX: usize = 64 * 1024 * 1024;

/// The largest log in a response, in bytes.
pub(crate) const LOG_BYTES_MAX: usize = 16 * 1024;

/// A limit that a script exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The time limit of the caller.
    Wall,
    /// Processor time.
    Processor,
    /// The memory of the engine.
    Memory,
    /// The depth of function calls.
    Depth,
    /// The number of tool calls.
    Calls,
    /// The number of other requests.
    Questions,
    /// The size of the answers of tools.
    BytesIn,
    /// The size of the messages of the script.
    BytesOut,
    /// The length of the script.
    Length,
    /// The number of saved scripts that run within each other.
    Nesting,
    /// The time that a script waits until it may run.
    Turn,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: usize| bytes / (1024 * 1024);
        match self {
            Self::Wall => f.write_str(
                "time: the script exceeded its time limit; do less in one script, or set \
                 timeout_ms",
            ),
            Self::Processor => write!(
                f,
                "processor time: the script used {} s; look for an endless loop or a slow regular \
                 expression",
                PROCESSOR_MAX.as_secs()
            ),
            Self::Memory => write!(
                f,
                "memory: the script used more than {} MiB; keep only the needed parts of each result",
                mib(MEMORY_BYTES_MAX)
            ),
            Self::Depth => f.write_str(
                "depth: function calls or values are nested too deeply; use a \
                 loop",
            ),
            Self::Calls => write!(
                f,
                "calls: more than {CALLS_MAX}, including those of call_many and saved scripts; request more with each call, or split the work"
            ),
            Self::Questions => write!(
                f,
                "questions: more than {QUESTIONS_MAX} searches, descriptions, files and waits"
            ),
            Self::BytesIn => write!(
                f,
                "bytes in: the calls returned more than {} MiB; request less",
                mib(BYTES_IN_MAX)
            ),
            Self::BytesOut => write!(
                f,
                "bytes out: the script sent more than {} MiB; return only the needed data",
                mib(BYTES_OUT_MAX)
            ),
            Self::Nesting => write!(
                f,
                "nesting: more than {NESTING_MAX} scripts within each other"
            ),
            Self::Turn => f.write_str(
                "turn: other scripts used up the time limit, and this script did not start; run \
                 fewer at once, or set timeout_ms",
            ),
            Self::Length => write!(
                f,
                "length: a script has at most {} KiB; pass data in args or a file",
                SCRIPT_BYTES_MAX / 1024
            ),
        }
    }
}
