//! The state of a tool's server, as hits mark it.

use registry::Entry;

use crate::{catalog::Catalog, render::hit::ServerMarks};

pub(super) fn marks(catalog: &Catalog, entry: &Entry) -> ServerMarks {
    let server = &entry.at.server;
    ServerMarks {
        needs_login: catalog.needs_login(server, entry.stale),
        is_down: catalog.servers.is_down(server),
    }
}
