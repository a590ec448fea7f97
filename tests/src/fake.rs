//! A programmable MCP server, written on plain lines of JSON-RPC so that it can also do things that
//! no library permits.
//!
//! A [`Script`] is data: a test builds one, writes it to a file, and starts the program
//! `fake-server --script-file FILE`.

mod answers;
mod far;
mod inquiry;
mod items;
pub mod payload;
mod script;
mod serve;

pub(crate) use answers::with_catalog;
pub use far::{Far, Mood};
pub use script::{Era, FakeItem, Paging, Script, Step, TaskScript};
pub use serve::serve;

/// The revision whose requests carry their own `_meta` instead of a session.
pub const MODERN_VERSION: &str = "2026-07-28";
/// The newest revision that begins with `initialize`.
pub const LEGACY_VERSION: &str = "2025-11-25";
/// The revisions that begin with `initialize`.
pub const LEGACY_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", LEGACY_VERSION];

/// The `_meta` keys of a modern request.
pub const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The member of `_meta` with a client's capabilities.
pub const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The member of `_meta` with the id of a subscription.
pub const META_SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
