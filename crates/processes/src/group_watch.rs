//! The record of process groups that a spawner and its trees share.

use std::sync::Arc;

use crate::{Reaper, group::Group, mark::Mark, proof::SharedScans};

/// The reaper, if any, that ends our groups after our exit, and the shared scans of their members.
#[derive(Debug, Default)]
pub(crate) struct GroupWatch {
    pub(crate) reaper: Option<Arc<Reaper>>,
    /// The reaper ends these groups at its deadline, too.
    pub(crate) has_deadline: bool,
    pub(crate) scans: Arc<SharedScans>,
}

impl GroupWatch {
    /// Registers the group of the child with this mark.
    pub(crate) fn watch(&self, group: &Group, mark: Option<&Mark>) {
        let Some(reaper) = &self.reaper else { return };
        if self.has_deadline {
            reaper.watch_until_deadline(group, mark);
        } else {
            reaper.watch(group);
        }
    }

    pub(crate) fn forget(&self, group: &Group) {
        if let Some(reaper) = &self.reaper {
            reaper.forget(group);
        }
    }
}
