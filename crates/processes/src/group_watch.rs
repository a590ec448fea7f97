//! The watch over process groups that a spawner and its trees share.

use crate::{Reaper, group::Group, proof::Looks};

/// The reaper, if there is one, that would end our groups, and the looks for who is in them.
#[derive(Debug, Default)]
pub(crate) struct GroupWatch {
    pub(crate) reaper: Option<Reaper>,
    pub(crate) looks: Looks,
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
