//! Ends a child and all its descendants.

use std::{io, process::ExitStatus, sync::Arc};

use process_wrap::tokio::ChildWrapper;
use tokio::{
    process::{ChildStderr, ChildStdin, ChildStdout},
    time::{sleep, timeout},
};
use win32job::Job;

use super::{
    job::list,
    pipes::{PipeReader, PipeWriter},
};
use crate::{
    Pace,
    limits::{GRACE_AFTER_KILL, GROUP_POLL, GROUP_POLL_MAX},
};

/// A child and all its descendants, which are in one job. Dropping the tree ends them.
#[derive(Debug)]
pub struct JobTree {
    child: Box<dyn ChildWrapper>,
    pub(super) job: Arc<Job>,
}

impl JobTree {
    pub(super) fn new(child: Box<dyn ChildWrapper>, job: Arc<Job>) -> Self {
        Self { child, job }
    }

    /// Returns the pid of the child; `None` once its exit was noticed.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Returns the pipe on the first call; the caller closes it before [`JobTree::stop`].
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin().take()
    }

    /// Returns the pipe on the first call, if the command pipes stdout.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout().take()
    }

    /// Returns the ends of stdin and stdout on the first call.
    pub fn take_pipes(&mut self, _: usize) -> io::Result<(PipeReader, PipeWriter)> {
        let missing = || io::Error::from(io::ErrorKind::BrokenPipe);
        let stdin = self.take_stdin().ok_or_else(missing)?;
        let stdout = self.take_stdout().ok_or_else(missing)?;
        Ok((Box::new(stdout), PipeWriter::to_child(stdin)))
    }

    /// Returns the pipe on the first call, if the command pipes stderr.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr().take()
    }

    /// Waits until the child itself has exited; other processes of its job may still run.
    pub async fn reap_leader(&mut self) {
        let _ = self.wait_for_exit().await;
    }

    /// Returns true if the child process itself has exited.
    pub fn has_left(&mut self) -> bool {
        let status = self.child.inner_mut().try_wait();
        status.map_or(true, |status| status.is_some())
    }

    /// Waits until the child has exited.
    pub async fn wait_for_exit(&mut self) -> io::Result<ExitStatus> {
        self.child.inner_mut().wait().await
    }

    /// Ends the child and all its descendants: end of input, then the end of the job. The caller has closed
    /// the child's stdin. Each step waits for all of these processes. There is no request between the two:
    /// Windows has no signal for a process without a console.
    pub async fn stop(&mut self, pace: Pace) {
        let [after_eof, _] = pace.waits();
        if timeout(after_eof, self.wait_for_all()).await.is_err() {
            let _ = self.child.start_kill();
            let _ = timeout(GRACE_AFTER_KILL, self.wait_for_all()).await;
        }
    }

    /// Waits until no process is left. No event of the job is waited for: its queue also has others.
    async fn wait_for_all(&mut self) {
        let _ = self.wait_for_exit().await;
        let mut rest = GROUP_POLL;
        while list(&self.job).is_none_or(|left| !left.is_empty()) {
            sleep(rest).await;
            rest = (rest * 2).min(GROUP_POLL_MAX);
        }
    }
}

/// Ends the processes when a start is abandoned or a runtime ends.
impl Drop for JobTree {
    fn drop(&mut self) {
        let _ = self.child.start_kill();
    }
}
