//! Starts child processes.

use std::{io, sync::Arc, time::Duration};

use process_wrap::tokio::{CommandWrap, CommandWrapper, JobObject, KillOnDrop};
use tokio::process::{Child, Command};
use win32job::Job;

use super::{
    Reaper, Tree,
    job::{create, hold_children},
    memory::register,
};

/// Flags of `CreateProcessW`: start suspended, and without a window, since we may have no console.
const CREATE_SUSPENDED: u32 = 0x4;
const CREATE_NO_WINDOW: u32 = 0x0800_0000;

/// Starts children that are certain to be ended, by us or by the kernel.
#[derive(Debug, Default)]
pub struct Spawner(());

impl Spawner {
    /// Creates a spawner. From now on, all children of this process, also helpers, end with it.
    pub fn new(_: Option<Reaper>, _: String) -> Self {
        hold_children();
        Self(())
    }

    /// Returns a spawner like this one: nothing ends children at a deadline here while this process stands still.
    #[must_use]
    pub fn with_deadline(&self) -> Self {
        Self(())
    }

    /// Has no effect: see [`Spawner::with_deadline`].
    pub fn move_deadline(&self, _: Duration) {}

    /// Returns 0: no predecessor can leave a process.
    pub fn end_leftovers(&self) -> usize {
        0
    }

    /// Starts a child in a job of its own.
    pub fn spawn(&self, command: Command) -> io::Result<Tree> {
        hold_children();
        let job = Arc::new(create()?);
        let mut wrapped = CommandWrap::from(command);
        wrapped
            .wrap(InJob(Arc::clone(&job)))
            .wrap(KillOnDrop)
            .wrap(JobObject)
            .wrap(WithoutWindow);
        let child = wrapped.spawn()?;
        drop(wrapped);
        if let Some(id) = child.id() {
            register(id, Arc::downgrade(&job));
        }
        Ok(Tree::new(child, job))
    }
}

/// Puts the child into a job before its first thread runs: [`JobObject`] has it start suspended.
#[derive(Debug)]
struct InJob(Arc<Job>);

impl CommandWrapper for InJob {
    fn post_spawn(
        &mut self,
        _: &mut Command,
        child: &mut Child,
        _: &CommandWrap,
    ) -> io::Result<()> {
        let handle = child.raw_handle().ok_or(io::ErrorKind::NotFound)?;
        let assigned = self.0.assign_process(handle as isize);
        assigned.map_err(|error| {
            let _ = child.start_kill();
            io::Error::other(error)
        })
    }
}

/// Adds a flag to those of [`JobObject`], which sets them before.
#[derive(Debug)]
struct WithoutWindow;

impl CommandWrapper for WithoutWindow {
    fn pre_spawn(&mut self, command: &mut Command, _: &CommandWrap) -> io::Result<()> {
        command.creation_flags(CREATE_NO_WINDOW | CREATE_SUSPENDED);
        Ok(())
    }
}
