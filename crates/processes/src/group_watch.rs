//! The record of process groups that a spawner and its trees share.

use crate::{Reaper, group::Group, proof::SharedScans};

/// The reaper, if any, that ends our groups after our exit, and the shared scans of their members.
#[derive(Debug, Default)]
pub(crate) struct GroupWatch {
    pub(crate) reaper: Option<Reaper>,
    pub(crate) scans: SharedScans,
}

impl GroupWatch {
    pub(crate) fn watch(&self, group: &Group) {
        if let Some(reaper) = &self.reaper {
            reaper.watch(group);
        }
    }

    pub(crate) fn forget(&self, group: &Group) {
        if let Some(reaper) = &self.reaper {
            reaper.forget(group);
        }
    }
}
