//! The protocol era of each server, as it is remembered.

use fleet::{Era, ServerSpec};
use registry::Catalog;

/// The specifications with the protocol era that each server spoke last time, so that no start
/// pays for a wrong guess twice.
pub(crate) fn with_known_eras(mut specs: Vec<ServerSpec>, catalog: &Catalog) -> Vec<ServerSpec> {
    for spec in &mut specs {
        let known = catalog
            .servers
            .iter()
            .find(|server| server.name == spec.name);
        let protocol = known
            .map(|server| server.protocol.as_str())
            .filter(|it| !it.is_empty());
        spec.era = protocol.map(Era::of);
    }
    specs
}
