//! The daemon's log: a file of bounded size beside its state.

use std::{
    path::{Path, PathBuf},
    sync::Mutex,
};

use fleet::BoundedLog;

/// Where the daemon of a configuration logs. What was written before stands in a file with `.1`
/// after the name.
pub(crate) fn path(state_dir: &Path) -> PathBuf {
    state_dir.join("daemon.log")
}

pub(crate) fn writer(state_dir: &Path) -> Mutex<BoundedLog> {
    Mutex::new(BoundedLog::new(path(state_dir)))
}
