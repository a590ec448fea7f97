//! The keys of `_meta` that the protocol defines. They apply to one connection and are never forwarded.

/// The prefix of all these keys.
pub const PREFIX: &str = "io.modelcontextprotocol/";

/// The protocol revision of a request; without a handshake, each request contains it.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// The name and version of the client.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";

/// The capabilities of the client; an object, which may be empty.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// The id of the `subscriptions/listen` request that a notification is for.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// The minimum level of the log messages that the client receives during this request.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
