//! Every bound of this room, with its unit and its reason.

use std::time::Duration;

/// Bytes that we ask the system to buffer in a pipe (64 KiB by default): a large answer then
/// crosses with a quarter of the wake-ups. Best effort: one user may hold 64 MiB of pipes by
/// default, and past that every new one shrinks, so fifty servers stay well below it.
pub(crate) const PIPE_BYTES: usize = 256 * 1024;

/// Messages waiting for rmcp (handshake, pings, requests of the server). Past
/// this a server's notifications are dropped; calls do not pass through here.
pub(crate) const RMCP_MESSAGES_MAX: usize = 256;

/// Lines of a server's stderr kept for messages. What tells may stand before a launcher's own stack
/// trace, of some 30 lines.
pub(crate) const STDERR_LINES_MAX: usize = 80;

/// Bytes kept of one line of stderr.
pub(crate) const STDERR_LINE_BYTES_MAX: usize = 2 * 1024;

/// Lines of stderr waiting for the disk, of one server. Past this they are left out of its log.
pub(crate) const LOG_WAITING_LINES_MAX: usize = 1024;

/// Lines written to a log at once: at most a sixteenth of a log.
pub(crate) const LOG_BATCH_LINES: usize = 32;

/// Calls of one client that one server gets at one time; further ones of that client wait, within
/// their own limit. So a client that floods a server delays others by so many calls at most.
pub(crate) const CALLS_OF_CLIENT_MAX: usize = 64;

/// Pages of a list read from one server: none of 85 real ones pages at all.
pub(crate) const PAGES_MAX: usize = 200;

/// Bytes of all pages of a server's `tools/list` together, and of one page while it is read. The
/// largest real list has 0.4 MB; 20,000 ordinary tools fit.
pub(crate) const LIST_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Bytes of one tool's definition. The largest real one has some 50 KB; a definition this long
/// would fill any model's context by itself.
pub(crate) const TOOL_BYTES_MAX: usize = 1024 * 1024;

/// Reasons why tools were left out that are kept of one survey; a list may hold millions of
/// elements that are no tools.
pub(crate) const DROPPED_REASONS_MAX: usize = 100;

/// Characters kept of what a server says of itself: its name and its version, each.
pub(crate) const ABOUT_CHARS_MAX: usize = 100;

/// Characters kept of a server's instructions.
pub(crate) const INSTRUCTIONS_CHARS_MAX: usize = 20_000;

/// Tools kept of one server; the largest real list holds some hundreds.
pub(crate) const TOOLS_MAX: usize = 20_000;

/// Prompts, resources and templates kept of one server, of each; a client's menu shows some hundreds.
pub(crate) const ITEMS_MAX: usize = 5_000;

/// Bytes of one of them: an icon may be in it.
pub(crate) const ITEM_BYTES_MAX: usize = 256 * 1024;

/// Bytes of each of these lists, read and kept.
pub(crate) const ITEMS_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The lists besides tools, all of them: they hold up the tools, which are known by then.
pub(crate) const OFFER_TIMEOUT: Duration = Duration::from_secs(20);

/// The tools of one server, after its handshake.
pub(crate) const SURVEY_TIMEOUT: Duration = Duration::from_mins(1);

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

/// After a child has left and others hold its pipes, how long one of them may take to answer a ping,
/// or the handshake where the child failed: a server whose launcher left does so at once, and what is
/// in the pipe is read meanwhile.
pub(crate) const ORPHAN_ANSWER_WAIT: Duration = Duration::from_secs(2);

/// The same where the child had left before the server was ready: then it was a launcher, and the
/// server may be busy with its first call.
pub(crate) const LAUNCHED_ANSWER_WAIT: Duration = Duration::from_secs(30);

/// A server that reads no more is ended after so long: what it wrote before comes first.
pub(crate) const LAST_LINES_WAIT: Duration = Duration::from_millis(500);

/// A call that did not reach its server, because that was dead and nobody knew, is sent to the one
/// that is started in its place, so often at most.
pub(crate) const SENDS_MAX: u32 = 3;

/// A server that dies is started again at once, without waiting for its next call, if it answered
/// one in this time.
pub(crate) const IN_USE_WITHIN: Duration = Duration::from_mins(5);

/// A caller whose server died under it waits this long to learn why.
pub(crate) const EXIT_REASON_WAIT: Duration = Duration::from_secs(2);

/// A question may wait so long for its person, who may be at lunch. The clock of the call stands
/// meanwhile, so nothing else would end it.
pub(crate) const QUESTION_TIMEOUT: Duration = Duration::from_hours(1);

/// A question is left alone for so long; from then on a call of another session that waits for the
/// server ends it. Half of the default limit of a call, so that a caller who waits still gets its
/// answer.
pub(crate) const QUESTION_UNDISTURBED: Duration = Duration::from_secs(30);

/// Calls of a tool that asked nothing, before calls of it go together with those of other sessions
/// on a server that asks. A tool that asks now and then has asked by then; one that asks later is
/// refused that question, where another session calls at that moment.
pub(crate) const QUIET_CALLS_MIN: u32 = 8;

/// Tools of one server of which it is remembered whether they ask.
pub(crate) const HABITS_MAX: usize = 4_096;

/// Questions of one server that are open at one time; further ones are refused.
pub(crate) const QUESTIONS_MAX: usize = 64;

/// Visits to addresses that one server asked for, and of which it may still say that they are over.
pub(crate) const ELICITATIONS_MAX: usize = 256;

/// A daemon that is there removes a container in a second.
pub(crate) const CONTAINER_REMOVAL_WAIT: Duration = Duration::from_secs(10);

/// A client says its roots without asking anybody; past this the server gets those that we know.
pub(crate) const ROOTS_TIMEOUT: Duration = Duration::from_secs(10);
