//! The decisions about definitions that nodes of a cluster share.

use std::collections::BTreeMap;

use tool::ServerName;

use crate::{
    RegistryError, catalog::Records, disk::Stamp, pin_book::PINS, pins::SharedPins,
    registry::Registry, review::DecideError,
};

/// Reads the decisions of this node, and reads the file again only if it changed.
#[derive(Debug, Default)]
pub struct OwnPins {
    stamp: Option<Stamp>,
    pins: BTreeMap<String, SharedPins>,
}

impl OwnPins {
    /// Returns the decisions about each server that was surveyed. Pins that cannot be trusted are not shared.
    pub fn read(&mut self, registry: &Registry) -> &BTreeMap<String, SharedPins> {
        let stamp = registry.disk().stamp(PINS);
        if self.stamp != Some(stamp) {
            let (_, book) = Records::read_with_pins(registry.disk());
            let pins = book.iter().filter(|_| book.trouble().is_none());
            self.pins = pins
                .map(|(name, pins)| (name.clone(), pins.shared()))
                .collect();
            self.stamp = Some(stamp);
        }
        &self.pins
    }
}

/// Takes the decisions of other nodes about a server in place of this node's, also before the server's first
/// survey. With `keeps_refusals`, definitions that were refused here stay so. Durable when it returns; waits for
/// another writer's turn.
pub fn adopt_pins(
    registry: &Registry,
    server: &ServerName,
    shared: &SharedPins,
    keeps_refusals: bool,
) -> Result<(), DecideError> {
    let disk = registry.disk();
    let _turn = disk.take_turn().map_err(RegistryError::from)?;
    let (records, mut book) = Records::read_with_pins(disk);
    if let Some(trouble) = book.trouble() {
        return Err(DecideError::Pins(trouble.clone()));
    }
    let mut pins = book.of(server.as_str()).clone();
    pins.adopt(shared, keeps_refusals);
    book.set(server.as_str(), pins);
    Ok(book
        .write_with(disk, &records)
        .map_err(RegistryError::from)?)
}
