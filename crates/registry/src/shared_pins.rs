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

/// Takes the decisions of other nodes about servers in place of this node's, also before a server's first survey.
/// With `true`, definitions of the server that were refused here stay so. Returns true if a decision changed.
/// Durable when it returns; waits for another writer's turn.
pub fn adopt_pins(
    registry: &Registry,
    shared: &[(ServerName, SharedPins, bool)],
) -> Result<bool, DecideError> {
    let disk = registry.disk();
    let _turn = disk.take_turn().map_err(RegistryError::from)?;
    let (records, mut book) = Records::read_with_pins(disk);
    if let Some(trouble) = book.trouble() {
        return Err(DecideError::Pins(trouble.clone()));
    }
    let mut is_changed = false;
    for (server, shared, keeps_refusals) in shared {
        let mut pins = book.of(server.as_str()).clone();
        if pins.adopt(shared, *keeps_refusals) {
            pins = pins.with_signs(disk, &records, server.as_str());
        }
        is_changed |= book.get(server.as_str()) != Some(&pins);
        book.set(server.as_str(), pins);
    }
    // Without a change, this writes nothing.
    book.write(disk, &records).map_err(RegistryError::from)?;
    Ok(is_changed)
}
