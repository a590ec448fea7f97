//! The protocol revision and transport that each server used last, for its next connection.

use std::collections::HashMap;

use fleet::{ServerSpec, Spoken};
use jsonrpc::mcp::{Revision, Transport};
use registry::ServerCatalog;

/// Adds to the specifications the protocol that each server used last time, and whether it asks
/// questions, so that a wrong guess is not repeated.
pub(crate) fn with_last_spoken(
    mut specs: Vec<ServerSpec>,
    catalog: &ServerCatalog,
) -> Vec<ServerSpec> {
    let known = catalog.servers.iter().map(|server| (&server.name, server));
    let known: HashMap<_, _> = known.collect();
    for spec in &mut specs {
        let known = known.get(&spec.name);
        let known = known.filter(|server| !server.protocol.is_empty());
        spec.asks_clients = known.is_some_and(|server| server.asks_clients);
        spec.spoken = known.map(|server| Spoken {
            revision: Revision::named(&server.protocol),
            transport: server
                .transport
                .as_deref()
                .and_then(Transport::parse)
                .unwrap_or_default(),
        });
    }
    specs
}
