//! Every bound of this room, with its unit and its reason.

use std::time::Duration;

/// A line longer than this is not kept: its call fails, the connection lives on. Servers were
/// seen to answer with 2 MB in one line; some hundred times that is a fault, not an answer.
pub(crate) const LINE_BYTES_MAX: usize = 256 * 1024 * 1024;

/// What we ask the system to buffer in a pipe (64 KiB by default): a large answer then crosses
/// with a quarter of the wake-ups. Best effort: one user may hold 64 MiB of pipes by default, and past
/// that every new one shrinks, so fifty servers stay well below it.
pub(crate) const PIPE_BYTES: usize = 256 * 1024;

/// Free room kept ready for the next read of a pipe.
pub(crate) const READ_BYTES: usize = 64 * 1024;

/// Bytes waiting for a peer that does not read. A sender waits past this, within its deadline.
pub(crate) const OUTBOX_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Messages waiting for the protocol engine (handshake, pings, requests of the server). Past
/// this a server's notifications are dropped; calls do not pass through here.
pub(crate) const ENGINE_MESSAGES_MAX: usize = 256;

/// Lines of a server's stderr kept for messages.
pub(crate) const STDERR_LINES_MAX: usize = 40;

/// Bytes kept of one line of stderr.
pub(crate) const STDERR_LINE_BYTES_MAX: usize = 2 * 1024;

/// Lines of stderr waiting for the disk, of one server. Past this they are left out of its log.
pub(crate) const LOG_WAITING_LINES_MAX: usize = 1024;

/// Lines written to a log at once: at most a sixteenth of a log.
pub(crate) const LOG_BATCH_LINES: usize = 32;

/// A log this long is put aside, and the one before it is thrown away.
pub(crate) const LOG_BYTES_MAX: u64 = 1024 * 1024;

/// Calls of one client that one server gets at one time; further ones of that client wait, within
/// their own limit. So a client that floods a server delays others by so many calls at most.
pub(crate) const CALLS_OF_CLIENT_MAX: usize = 64;

/// Pages of `tools/list` read from one server: none of 85 real ones pages at all.
pub(crate) const PAGES_MAX: usize = 200;

/// Tools kept of one server; the largest real list holds some hundreds.
pub(crate) const TOOLS_MAX: usize = 20_000;

/// The whole survey of one server after its handshake.
pub(crate) const SURVEY_TIMEOUT: Duration = Duration::from_mins(1);

/// A child that was asked to end by closing its stdin may take this long.
pub(crate) const GRACE_AFTER_EOF: Duration = Duration::from_millis(600);

/// A process group that was sent SIGTERM may take this long; measured servers needed up to
/// 0.8 s on a loaded machine, and the whole program must be gone within 2 s.
pub(crate) const GRACE_AFTER_TERM: Duration = Duration::from_millis(700);

/// A process group that was sent SIGKILL is gone at once, unless the system is busy with it.
/// Within the same time the end of its stderr is read.
pub(crate) const GRACE_AFTER_KILL: Duration = Duration::from_millis(200);

/// How often we look whether a group is gone, since nothing wakes us when its last member leaves:
/// at once, and then ever less often.
pub(crate) const GROUP_POLL: Duration = Duration::from_millis(5);
pub(crate) const GROUP_POLL_MAX: Duration = Duration::from_millis(100);

/// What the guard, and the sweep of a start, leave a group between TERM and KILL: it has lost
/// its client, and nobody waits for its answers.
pub(crate) const GUARD_GRACE: Duration = Duration::from_millis(300);

/// After its stdout closed, how long we wait to learn a child's exit status.
pub(crate) const EXIT_STATUS_WAIT: Duration = Duration::from_millis(500);

/// After a child's exit, how long we wait for the rest of its stderr (a grandchild may hold it).
pub(crate) const STDERR_END_WAIT: Duration = Duration::from_millis(200);

/// The first rest after a failed start; doubled by each further failure up to `REST_MAX`.
pub(crate) const REST_MIN: Duration = Duration::from_millis(500);
pub(crate) const REST_MAX: Duration = Duration::from_mins(1);

/// A server that lived this long is healthy again: its failures are forgotten.
pub(crate) const HEALTHY_AFTER: Duration = Duration::from_secs(30);

/// A caller waits for the end of a rest no longer than this; past it, the failure is the answer.
pub(crate) const REST_WAIT_MAX: Duration = Duration::from_secs(2);

/// A caller whose server died under it waits this long to learn why.
pub(crate) const OBITUARY_WAIT: Duration = Duration::from_secs(2);

/// A list whose time to live is shorter than this is not looked at more often.
pub(crate) const LOOK_AGAIN_MIN: Duration = Duration::from_mins(1);

/// A test waits this long for a process that was told to end, before it fails.
#[cfg(test)]
pub(crate) const TEST_WAIT: Duration = Duration::from_secs(20);
