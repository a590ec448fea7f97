//! The MCP names used for both clients and servers: revisions, transports, `_meta` keys and error
//! codes, log levels. This module parses no messages.

pub mod meta;
mod revision;
mod transport;

pub use revision::Revision;
pub use transport::Transport;

/// The extension by which a server serves skills (SEP-2640).
pub const SKILLS_EXTENSION: &str = "io.modelcontextprotocol/skills";

/// The extension by which a server answers a call with a task (SEP-2663).
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// The extension by which a client shows apps, the pages of servers (SEP-1865).
pub const APPS_EXTENSION: &str = "io.modelcontextprotocol/ui";

/// The type of an app's page, which such a client supports.
pub const APP_TYPE: &str = "text/html;profile=mcp-app";

/// The error code for an HTTP request whose headers do not match its body.
pub const HEADER_MISMATCH: i32 = -32_020;

/// The error code for a request that needs a capability that the client did not declare (from
/// 2026-07-28 on).
pub const MISSING_CAPABILITY: i32 = -32_021;

/// The error code for a request that is refused until the user has visited the URLs in its `data`
/// (2025-11-25).
pub const ADDRESSES_FIRST: i32 = -32_042;

/// The severities of log messages (RFC 5424), mildest first.
pub const LOG_LEVELS: [&str; 8] = [
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
];
