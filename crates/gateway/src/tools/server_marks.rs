//! The state of a tool's server, as hits mark it.

use registry::Entry;

use crate::{catalog::Catalog, render::hit::ServerMarks};

pub(super) fn marks(catalog: &Catalog, entry: &Entry) -> ServerMarks {
    let server = &entry.at.server;
    let least = entry.overlay.min_version.as_deref();
    let is_outdated = least.is_some_and(|least| {
        let known = catalog.registry.known_server(server);
        known.is_some_and(|it| it.is_older_than(least))
    });
    ServerMarks {
        is_outdated,
        needs_login: catalog.needs_login(server, entry.stale),
        is_down: catalog.servers.is_down(server),
        absent_node: catalog.servers.absent_node(server),
    }
}
