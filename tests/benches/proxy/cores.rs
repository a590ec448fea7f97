//! Pins this process and its children to processors.
//!
//! Waking a sleeping processor costs some ten microseconds on a virtual machine, more than a whole
//! small call, and the system decides when to do it. On a single processor there are no such
//! wake-ups, and only work is measured.

use std::{
    fs,
    process::{Command, Stdio},
};

/// Pins this process, and the processes that it starts from here on, to one processor until
/// dropped.
#[derive(Debug)]
pub(crate) struct OneCore {
    before: String,
}

impl OneCore {
    /// Returns `None` if the system has no `taskset`, or does not allow setting processors.
    pub(crate) fn take() -> Option<Self> {
        let before = allowed()?;
        let last = before.rsplit([',', '-']).next()?.to_owned();
        keep_to(&last).then_some(Self { before })
    }
}

impl Drop for OneCore {
    fn drop(&mut self) {
        keep_to(&self.before);
    }
}

fn allowed() -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(line.trim().to_owned())
}

fn keep_to(cores: &str) -> bool {
    let mut taskset = Command::new("taskset");
    taskset.args(["-cp", cores, &std::process::id().to_string()]);
    taskset.stdout(Stdio::null()).stderr(Stdio::null());
    taskset.status().is_ok_and(|status| status.success())
}
