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
        trouble: catalog.find_trouble(server, entry.stale),
        absent_node: catalog
            .servers
            .cluster()
            .and_then(|node| node.absent_node(server)),
    }
}
