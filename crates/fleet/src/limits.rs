//! Every limit of this crate, with its unit and its reason.

use std::time::Duration;

/// The requested size of a pipe's buffer, in bytes (64 KiB by default): a large response needs a
/// quarter of the wake-ups. Linux limits the pipes of one user to 64 MiB by default and shrinks
/// further ones; fifty servers stay well below that.
pub(crate) const PIPE_BYTES: usize = 256 * 1024;

/// The queue of messages for rmcp (handshake, pings, requests of the server). When it is full,
/// notifications are dropped. Calls do not use it.
pub(crate) const RMCP_MESSAGES_MAX: usize = 256;

/// Lines of a server's stderr kept for error messages. The cause may precede a launcher's stack trace
/// of some 30 lines.
pub(crate) const STDERR_LINES_MAX: usize = 80;

/// Bytes kept of one line of stderr.
pub(crate) const STDERR_LINE_BYTES_MAX: usize = 2 * 1024;

/// Bytes kept of the output of a command. Results are cut to thousands of tokens; the rest is kept on
/// disk for `read_result`.
pub(crate) const COMMAND_OUTPUT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Lines of stderr in the error of a command that failed.
pub(crate) const COMMAND_STDERR_LINES_MAX: usize = 20;

/// Lines of a server's stderr that wait for the disk. Further lines are left out of its log.
pub(crate) const LOG_WAITING_LINES_MAX: usize = 1024;

/// Lines written to a log at once: at most a sixteenth of a log.
pub(crate) const LOG_BATCH_LINES: usize = 32;

/// Concurrent calls of one client at one server. Further calls of that client wait, within their own
/// timeout, so a client that floods a server delays others by at most this many calls.
pub(crate) const CALLS_OF_CLIENT_MAX: usize = 64;

/// Pages read of one list. None of 85 real servers uses pages at all.
pub(crate) const PAGES_MAX: usize = 200;

/// Bytes of all pages of a server's `tools/list` together, and of one page. The largest real list has
/// 0.4 MB; 20,000 ordinary tools fit.
pub(crate) const LIST_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Bytes of one tool's definition. The largest real one has some 50 KB; a definition this long
/// would fill any model's context by itself.
pub(crate) const TOOL_BYTES_MAX: usize = 1024 * 1024;

/// Reasons kept for tools that one survey left out. A list may have millions of invalid elements.
pub(crate) const DROPPED_REASONS_MAX: usize = 100;

/// Characters kept of a server's name, and of its version.
pub(crate) const ABOUT_CHARS_MAX: usize = 100;

/// Characters kept of a server's instructions.
pub(crate) const INSTRUCTIONS_CHARS_MAX: usize = 20_000;

/// Tools kept of one server. The largest real list has some hundreds.
pub(crate) const TOOLS_MAX: usize = 20_000;

/// Items kept of each list of prompts, resources and templates. A client's menu shows some hundreds.
pub(crate) const ITEMS_MAX: usize = 5_000;

/// Bytes of one prompt, resource or template, which may contain an icon.
pub(crate) const ITEM_BYTES_MAX: usize = 256 * 1024;

/// Bytes of each list of prompts, resources and templates.
pub(crate) const ITEMS_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Apps that a survey reads; each is a page of a few hundred kilobytes, and a server has some.
pub(crate) const APPS_MAX: usize = 50;

/// Bytes of the domains and permissions of one app.
pub(crate) const APP_NEEDS_BYTES_MAX: usize = 16 * 1024;

/// The timeout of all lists except `tools/list`: the tools, which are known by then, wait for them.
pub(crate) const OFFER_TIMEOUT: Duration = Duration::from_secs(20);

/// The timeout of `tools/list` with all its pages, after the handshake.
pub(crate) const SURVEY_TIMEOUT: Duration = Duration::from_mins(1);

/// The wait for a child's exit status after its stdout was closed.
pub(crate) const EXIT_STATUS_WAIT: Duration = Duration::from_millis(500);

/// The wait for the rest of a child's stderr after its exit: a grandchild may hold it open.
pub(crate) const STDERR_END_WAIT: Duration = Duration::from_millis(200);

/// The rest after the first failed start. Each further failure doubles it, up to `REST_MAX`.
pub(crate) const REST_MIN: Duration = Duration::from_millis(500);
pub(crate) const REST_MAX: Duration = Duration::from_mins(1);

/// A server that ran for this time is healthy: its failures are forgotten.
pub(crate) const HEALTHY_AFTER: Duration = Duration::from_secs(30);

/// A call waits this long for the end of a rest. If the rest is longer, the call fails at once.
pub(crate) const REST_WAIT_MAX: Duration = Duration::from_secs(2);

/// The wait for the response to a ping, or to the handshake, after a child has exited and other
/// processes hold its pipes. A server whose launcher exited responds at once; the rest of the pipe is
/// read meanwhile.
pub(crate) const ORPHAN_ANSWER_WAIT: Duration = Duration::from_secs(2);

/// The same wait if the child exited before the server was ready: it was a launcher, and the server may
/// be busy with its first call.
pub(crate) const LAUNCHED_ANSWER_WAIT: Duration = Duration::from_secs(30);

/// The wait before a server that no longer reads is ended, so that its last lines are read.
pub(crate) const LAST_LINES_WAIT: Duration = Duration::from_millis(500);

/// The most attempts to send a call that did not reach its server because the server was dead. Each
/// attempt starts the server.
pub(crate) const SENDS_MAX: u32 = 3;

/// The time that running calls have to end when a person restarts their server. A call that works
/// mostly ends within it; one that hangs is the reason for the restart.
pub(crate) const RESTART_GRACE: Duration = Duration::from_secs(3);

/// A server that ends unexpectedly is restarted at once, before its next call, if it answered a call
/// within this time.
pub(crate) const IN_USE_WITHIN: Duration = Duration::from_mins(5);

/// The wait of a call for the reason why its server ended.
pub(crate) const EXIT_REASON_WAIT: Duration = Duration::from_secs(2);

/// The timeout of a question to a person, who may be at lunch. It pauses the clock of the call, so
/// nothing else would end it.
pub(crate) const QUESTION_TIMEOUT: Duration = Duration::from_hours(1);

/// The time before a waiting call of another session may end a question. It is half of the default
/// timeout of a call, so that the waiting call still gets its result.
pub(crate) const QUESTION_UNDISTURBED: Duration = Duration::from_secs(30);

/// Calls of a tool without a question after which it is not suspected if a question comes while several
/// calls of one session run. A tool that asks sometimes has asked by then.
pub(crate) const QUIET_CALLS_MIN: u32 = 8;

/// The time that a call waits for calls of other clients before it runs in another process of its server.
/// Most calls end within it, so that few servers run twice.
pub(crate) const TURN_WAIT_MAX: Duration = Duration::from_secs(2);

/// Processes of one server for calls that would wait for those of other clients, the usual one included: a
/// Node process takes some 50 MB.
pub(crate) const PROCESSES_MAX: u8 = 4;

/// The time without a call after which such a process is stopped.
pub(crate) const SPARE_IDLE: Duration = Duration::from_mins(1);

/// Tools of one server whose questions are counted.
pub(crate) const HABITS_MAX: usize = 4_096;

/// Concurrent open questions of one server. Further questions are refused.
pub(crate) const QUESTIONS_MAX: usize = 64;

/// Requested visits to URLs that one server may still report as complete.
pub(crate) const ELICITATIONS_MAX: usize = 256;

/// The timeout of the removal of a container. A working daemon needs a second.
pub(crate) const CONTAINER_REMOVAL_WAIT: Duration = Duration::from_secs(10);

/// The timeout of `roots/list` at a client, which asks no person. After it, the server gets the known
/// roots.
pub(crate) const ROOTS_TIMEOUT: Duration = Duration::from_secs(10);

/// Callers over HTTP whose last values are kept in memory.
pub(crate) const CALLERS_KNOWN_MAX: usize = 10_000;

/// The time for which an address at which a caller logs in is valid. A model has to show it to a person
/// first.
pub const LOGIN_OFFER_LIFE: Duration = Duration::from_mins(15);

/// Addresses for logins of callers that are valid at one time. The oldest one is given up for another.
pub(crate) const LOGIN_OFFERS_MAX: usize = 10_000;
