//! The limits of the page, each with its reason.

use std::time::Duration;

use http_core::ConnectionLimits;

/// The largest body of a request, in bytes: the arguments of a call, never a file.
pub(crate) const BODY_BYTES_MAX: usize = 256 * 1024;

/// The limits of connections.
pub(crate) const CONNECTIONS: ConnectionLimits = ConnectionLimits {
    // A browser opens six for an address, and a tab one more for its stream.
    connections_max: 64,
    head_bytes_max: 16 * 1024,
    // Also the time for a body to arrive.
    receive_timeout: Duration::from_secs(10),
    // A tab that comes back opens its stream again.
    stall_timeout: Duration::from_mins(1),
    // A tab that was closed gives up its stream at once.
    half_closed_timeout: Duration::ZERO,
    // A stream sends its last line.
    end_timeout: Duration::from_millis(500),
};

/// The most open streams: a tab has one.
pub(crate) const STREAMS_MAX: usize = 8;

/// The changes that wait for a tab that does not read; after that it gets a snapshot instead.
pub(crate) const CHANGES_WAITING_MAX: usize = 64;

/// The interval at which changes are looked for while a tab is open. Ten messages a second are as many as
/// a person can follow.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The interval at which figures that cost more are read: memory, logins, reviews.
pub(crate) const LOOK_CLOSELY_EVERY: Duration = Duration::from_secs(2);

/// The interval of messages on a stream without changes, by which a tab sees that it is alive.
pub(crate) const ALIVE_EVERY: Duration = Duration::from_secs(15);

/// The lifetime of a code: the time that a browser needs to start.
pub(crate) const CODE_LIFETIME: Duration = Duration::from_mins(1);

/// The most codes that are valid at one time.
pub(crate) const CODES_MAX: usize = 16;

/// The time without a request after which a token ends.
pub(crate) const TOKEN_IDLE: Duration = Duration::from_hours(12);

/// The most tokens; the one that was used least recently ends first.
pub(crate) const TOKENS_MAX: usize = 32;

/// The newest calls in which hits of rules are counted.
pub(crate) const CALLS_COUNTED_MAX: usize = 20_000;

/// The lines of a server's stderr in its detail.
pub(crate) const LOG_LINES_MAX: usize = 200;

/// The end of a log that is read for them, in bytes.
pub(crate) const LOG_BYTES_MAX: u64 = 256 * 1024;

/// The entries of a server's history in its detail.
pub(crate) const HISTORY_MAX: usize = 50;

/// The changes of the configuration that can be undone.
pub(crate) const CHANGES_KEPT_MAX: usize = 20;

/// The minutes of the chart of the last hour.
pub(crate) const MINUTES_MAX: u64 = 60;

/// The largest question that a page shows, in bytes: an approval has at most 20,000 characters.
pub(crate) const QUESTION_BYTES_MAX: usize = 128 * 1024;

/// The time after which the port of the page is not used again. A daemon that is restarted is back within
/// seconds.
pub(crate) const KEPT_PORT_MAX: Duration = Duration::from_mins(3);

/// The interval at which open tabs are noted; well below the time above.
pub(crate) const TABS_NOTED_EVERY: Duration = Duration::from_mins(1);

/// The attempts to listen on the kept port, which the daemon before holds until it has ended, and the wait
/// between them.
pub(crate) const PORT_TRIES: usize = 10;
pub(crate) const PORT_WAIT: Duration = Duration::from_millis(100);
