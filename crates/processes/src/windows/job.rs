//! Job objects: when the last handle of a job is closed, by us or because we ended, the kernel ends every
//! process in it. A child of a process in a job is in the job too.

use std::{io, sync::OnceLock};

use tracing::warn;
use win32job::{ExtendedLimitInfo, Job};

/// The job of this process, which is closed when it ends.
static OURS: OnceLock<Option<Job>> = OnceLock::new();

/// Puts this process into a job of its own, so that all children from now on end with it. A child may be
/// started outside of it: the daemon, or a browser.
pub(super) fn hold_children() {
    OURS.get_or_init(|| {
        let mut limits = ExtendedLimitInfo::new();
        limits.limit_kill_on_job_close().limit_breakaway_ok();
        let job = Job::create_with_limit_info(&limits);
        let held = job.and_then(|job| {
            job.assign_current_process()?;
            Ok(job)
        });
        held.inspect_err(
            |error| warn!(%error, "no job: helpers may outlive a kill of this process"),
        )
        .ok()
    });
}

/// Creates a job for one child and all that it starts; dropping it ends them.
pub(super) fn create() -> io::Result<Job> {
    let mut limits = ExtendedLimitInfo::new();
    limits.limit_kill_on_job_close();
    Job::create_with_limit_info(&limits).map_err(io::Error::other)
}

/// Returns the pids of the processes in a job; `None` if there are more than a thousand.
pub(super) fn list(job: &Job) -> Option<Vec<u32>> {
    let pids = job.query_process_id_list().ok()?;
    Some(
        pids.into_iter()
            .filter_map(|pid| u32::try_from(pid).ok())
            .collect(),
    )
}
