//! Where children come from.

use std::{io, sync::Arc};

use tokio::process::Command;

use crate::{
    Reaper, Tree,
    group::Group,
    mark::{Mark, VARIABLE},
    proof::Looks,
};

/// Starts children that can be ended for certain, by us and after us.
#[derive(Debug, Default)]
pub struct Spawner {
    reaper: Option<Reaper>,
    marker: String,
    looks: Looks,
}

impl Spawner {
    /// Without a reaper, children stay when we are killed, until a [`sweep`](crate::sweep). It
    /// knows them by the marker, which all proxies share that may clean up after each other.
    pub fn new(reaper: Option<Reaper>, marker: String) -> Self {
        Self {
            reaper,
            marker,
            looks: Looks::default(),
        }
    }

    /// Starts a child that leads a process group of its own. On top of what the command says of
    /// its environment, it gets one variable more.
    pub fn spawn(self: &Arc<Self>, mut command: Command) -> io::Result<Tree> {
        let mark = Mark::next(&self.marker);
        if let Some(mark) = &mark {
            command.env(VARIABLE, mark.to_string());
        }
        command.process_group(0).kill_on_drop(true);
        if let Some(reaper) = &self.reaper {
            reaper.ensure_running();
        }
        let child = command.spawn()?;
        // Nothing comes between: the reaper knows of it.
        let group = child.id().and_then(Group::led_by);
        if let Some(group) = &group {
            self.watch(group);
        }
        Ok(Tree::new(child, group, mark, Arc::clone(self)))
    }

    pub(crate) fn looks(&self) -> &Looks {
        &self.looks
    }

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

    /// How many groups the reaper would have to end.
    #[cfg(test)]
    pub(crate) fn watched(&self) -> usize {
        self.reaper.as_ref().unwrap().watched()
    }

    #[cfg(test)]
    pub(crate) fn reaper(&self) -> &Reaper {
        self.reaper.as_ref().unwrap()
    }
}
