//! Starts child processes.

use std::{io, sync::Arc, time::Duration};

use tokio::process::Command;

use crate::{
    Reaper, Tree,
    group::Group,
    group_watch::GroupWatch,
    mark::{Mark, VARIABLE},
    sweep::sweep,
};

/// Starts children that are certain to be ended, by us or after our exit.
#[derive(Debug, Default)]
pub struct Spawner {
    marker: String,
    groups: Arc<GroupWatch>,
}

impl Spawner {
    /// Creates a spawner. Without a reaper, children keep running when we are killed, until a
    /// [`sweep`](crate::sweep). The sweep identifies them by the marker, which all proxies share
    /// that may clean up after each other.
    pub fn new(reaper: Option<Reaper>, marker: String) -> Self {
        let groups = Arc::new(GroupWatch {
            reaper: reaper.map(Arc::new),
            ..GroupWatch::default()
        });
        Self { marker, groups }
    }

    /// Returns a spawner whose children the reaper also ends at a deadline, although this process lives: it may
    /// stand still. All such spawners share one deadline; without one, their children are like all others.
    #[must_use]
    pub fn with_deadline(&self) -> Self {
        let groups = GroupWatch {
            reaper: self.groups.reaper.clone(),
            has_deadline: true,
            scans: Arc::clone(&self.groups.scans),
        };
        Self {
            marker: self.marker.clone(),
            groups: Arc::new(groups),
        }
    }

    /// Moves the deadline to this [`machine_time`](crate::machine_time).
    pub fn move_deadline(&self, deadline: Duration) {
        if let Some(reaper) = &self.groups.reaper {
            reaper.move_deadline(deadline);
        }
    }

    /// Ends the processes that exited proxies with this marker left, as [`sweep`](crate::sweep) does.
    pub fn end_leftovers(&self) -> usize {
        sweep(&self.marker)
    }

    /// Starts a child that leads a process group of its own. Adds one variable to the environment
    /// of the command.
    pub fn spawn(&self, mut command: Command) -> io::Result<Tree> {
        let mark = Mark::next(&self.marker);
        if let Some(mark) = &mark {
            command.env(VARIABLE, mark.to_string());
        }
        command.process_group(0).kill_on_drop(true);
        if let Some(reaper) = &self.groups.reaper {
            reaper.ensure_running();
        }
        let child = command.spawn()?;
        // The group is registered with the reaper immediately after the spawn.
        let group = child.id().and_then(Group::led_by);
        if let Some(group) = &group {
            self.groups.watch(group, mark.as_ref());
        }
        Ok(Tree::new(child, group, mark, Arc::clone(&self.groups)))
    }

    /// Returns the number of groups registered with the reaper.
    #[cfg(test)]
    pub(crate) fn watched(&self) -> usize {
        self.groups.reaper.as_ref().unwrap().watched()
    }

    #[cfg(test)]
    pub(crate) fn reaper(&self) -> &Reaper {
        self.groups.reaper.as_deref().unwrap()
    }
}
