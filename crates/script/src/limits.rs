//! Bounds of one script, and the sentence for each that was met.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

/// The time that a script may take where its caller says nothing.
pub const WALL_DEFAULT: Duration = Duration::from_secs(30);

/// The longest time that a caller may give it: the calls of a long script take theirs.
pub const WALL_MAX: Duration = Duration::from_mins(10);

/// The longest script, in bytes: nobody writes more by hand.
pub const SCRIPT_BYTES_MAX: usize = 256 * 1024;

/// Processor time of the engine: a script waits, and computes little.
pub(crate) const PROCESSOR_MAX: Duration = Duration::from_secs(10);

/// Seconds beyond [`PROCESSOR_MAX`] after which the system sends SIGXCPU, should the engine not stop; as many later it
/// sends SIGKILL. Two limits, because SIGKILL alone would look like a system without memory.
pub(crate) const PROCESSOR_S_MORE: u64 = 2;

/// The engine's memory, in bytes: twice [`BYTES_IN_MAX`], because a result is held as text and as a value.
pub(crate) const MEMORY_BYTES_MAX: usize = 128 * 1024 * 1024;

/// The address space of the whole process, in bytes: our program, the engine and what the
/// reading of a script takes.
pub(crate) const ADDRESS_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// The engine's stack, in bytes: the deepest that functions call each other.
pub(crate) const STACK_BYTES_MAX: usize = 1024 * 1024;

/// Calls of tools that one script may make, those of saved scripts that it calls included.
pub const CALLS_MAX: usize = 100;

/// Scripts that run within each other, the outermost one included.
pub const NESTING_MAX: usize = 3;

/// Questions other than calls: searches, descriptions, files, naps.
pub(crate) const QUESTIONS_MAX: usize = 1_000;

/// Questions that are answered at one time.
pub(crate) const PARALLEL_MAX: usize = 16;

/// Total size of the answers to one script, in bytes: the most that waits in memory here until its process reads it.
pub(crate) const BYTES_IN_MAX: usize = 64 * 1024 * 1024;

/// Total size of the messages of one script, in bytes: arguments, log and value. As large as what comes in, because
/// scripts pass on what they read; the most that waits in memory on either side of the pipe.
pub(crate) const BYTES_OUT_MAX: usize = 64 * 1024 * 1024;

/// The log that comes with an answer, in bytes.
pub(crate) const LOG_BYTES_MAX: usize = 16 * 1024;

/// A bound that a script met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The time that its caller waits.
    Wall,
    /// Processor time.
    Processor,
    /// Memory of the engine.
    Memory,
    /// Functions that call each other.
    Depth,
    /// Calls of tools.
    Calls,
    /// Other questions.
    Questions,
    /// Bytes that tools answered.
    BytesIn,
    /// Bytes that the script said.
    BytesOut,
    /// The length of the script.
    Length,
    /// Saved scripts that run within each other.
    Nesting,
    /// The time that a script waits for its turn to run.
    Turn,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: usize| bytes / (1024 * 1024);
        match self {
            Self::Wall => f.write_str(
                "time: it was not done when its time was over; do less in one script, or give \
                 timeout_ms",
            ),
            Self::Processor => write!(
                f,
                "processor time: it computed for {} s; look for a loop or a regular expression \
                 without end",
                PROCESSOR_MAX.as_secs()
            ),
            Self::Memory => write!(
                f,
                "memory: it needed more than {} MiB; keep only what is needed of each result",
                mib(MEMORY_BYTES_MAX)
            ),
            Self::Depth => f.write_str(
                "depth: functions call each other, or values hold each other, too deeply; use a \
                 loop",
            ),
            Self::Calls => write!(
                f,
                "calls: more than {CALLS_MAX}, those within call_many and saved scripts included; let each call bring more, or split the work"
            ),
            Self::Questions => write!(
                f,
                "questions: more than {QUESTIONS_MAX} searches, descriptions, files and waits"
            ),
            Self::BytesIn => write!(
                f,
                "bytes in: its calls brought more than {} MiB; ask tools for less",
                mib(BYTES_IN_MAX)
            ),
            Self::BytesOut => write!(
                f,
                "bytes out: it said more than {} MiB; return only what is needed",
                mib(BYTES_OUT_MAX)
            ),
            Self::Nesting => write!(
                f,
                "nesting: more than {NESTING_MAX} scripts within each other"
            ),
            Self::Turn => f.write_str(
                "turn: other scripts ran for all of its time, and nothing of this one ran; run \
                 fewer at once, or give timeout_ms",
            ),
            Self::Length => write!(
                f,
                "length: a script has at most {} KiB; data belongs into args or a file",
                SCRIPT_BYTES_MAX / 1024
            ),
        }
    }
}
