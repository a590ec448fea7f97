//! Our own executable, for helpers that run in a separate process.

use std::path::PathBuf;

/// On Linux the link still names it after an upgrade has replaced the file.
pub fn own_program() -> Option<PathBuf> {
    let link = PathBuf::from("/proc/self/exe");
    if link.exists() {
        return Some(link);
    }
    std::env::current_exe().ok()
}
