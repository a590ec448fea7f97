//! Former keys. A file or a variable that sets one is read without it, and a note says what replaces it.

/// Former keys by their path, each with its replacement. They will be deleted with the next release.
pub(crate) const REMOVED: [(&str, &str); 9] = [
    ("http.max_connections", "the limit is 512 connections"),
    ("http.max_header_kib", "the limit is 32 KiB"),
    ("http.max_requests", "the limit is 256 requests"),
    ("http.receive_timeout_s", "the timeout is 30 seconds"),
    ("http.session_idle_s", "the time is 30 minutes"),
    (
        "http.sessions",
        "each `initialize` begins a session; 2026-07-28 has none",
    ),
    ("http.stall_timeout_s", "the time is 30 seconds"),
    ("reindex.parallel", "4 servers are started at the same time"),
    (
        "servers.NAME.max_callers",
        "the limit is 100 callers for a `command`, 1000 for a `url`",
    ),
];
