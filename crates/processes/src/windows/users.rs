//! The users of processes.

use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System, Uid, UpdateKind};

/// Returns our user as a security identifier, such as `S-1-5-21-1-2-3-1001`.
pub fn own_user() -> Option<String> {
    Some(user_of(std::process::id())?.to_string())
}

/// Returns true if a process runs as our user.
pub fn is_same_user(pid: u32) -> bool {
    let user = user_of(pid);
    user.is_some() && user == user_of(std::process::id())
}

fn user_of(pid: u32) -> Option<Uid> {
    let pid = Pid::from_u32(pid);
    let mut system = System::new().ok()?;
    let user = ProcessRefreshKind::nothing().with_user(UpdateKind::Always);
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), true, user);
    system.process(pid)?.user_id().cloned()
}
