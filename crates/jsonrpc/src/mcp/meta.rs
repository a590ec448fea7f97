//! The keys of `_meta` that are the protocol's own. They belong to one hop and are never passed on.

/// The beginning of each of these keys.
pub const PREFIX: &str = "io.modelcontextprotocol/";

/// The revision that a request speaks; each request names it where there is no handshake.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// The name and version of the program that asks.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";

/// The capabilities of the client that asks; an object, which may be empty.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// The id of the `subscriptions/listen` request that a notification is for.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// The level from which on the client hears the server's log during this request.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
