//! The state that was read from the files of the registry.

use std::sync::Arc;

use crate::{
    RegistryError,
    allow_deny::AllowDeny,
    catalog::{Records, ServerCatalog},
    disk::Stamp,
    pin_book::PinBook,
    server_rules::{Rules, ServerRules},
};

/// The rules of the configuration, with compiled globs.
#[derive(Debug)]
pub(crate) struct AppliedRules {
    pub(crate) rules: Rules,
    pub(crate) filters: Vec<AllowDeny>,
}

/// The stamps of the catalog, the pins, the requests and the file of vectors.
pub(crate) type Stamps = [Stamp; 4];

/// The content of the files at one stamp, under one configuration.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) stamp: Stamps,
    pub(crate) applied: Arc<AppliedRules>,
    pub(crate) records: Arc<Records>,
    pub(crate) book: Arc<PinBook>,
    pub(crate) catalog: Arc<ServerCatalog>,
}

impl AppliedRules {
    pub(crate) fn new(rules: Rules) -> Result<Self, RegistryError> {
        let filters = rules.servers.iter().map(ServerRules::compile);
        let filters = filters.collect::<Result<_, _>>()?;
        Ok(Self { rules, filters })
    }
}

impl Seen {
    /// Returns true if both have the same files and configuration, so that data derived from one is
    /// valid for the other.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.stamp == other.stamp && Arc::ptr_eq(&self.applied, &other.applied)
    }
}
