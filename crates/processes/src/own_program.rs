//! Our own executable, for helpers that run in a separate process.

use std::path::PathBuf;

/// Returns the path of our executable. On Linux the link is valid even after an upgrade replaced
/// the file.
pub fn own_program() -> Option<PathBuf> {
    let link = PathBuf::from("/proc/self/exe");
    if link.exists() {
        return Some(link);
    }
    std::env::current_exe().ok()
}
