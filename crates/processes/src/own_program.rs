//! Our own executable, for helpers that run in a separate process, and the name of our process.

use std::path::PathBuf;

/// Returns the path of our executable. On Linux the link is valid even after an upgrade replaced
/// the file.
pub fn own_program() -> Option<PathBuf> {
    let link = PathBuf::from("/proc/self/exe");
    if cfg!(unix) && link.exists() {
        return Some(link);
    }
    std::env::current_exe().ok()
}

/// Sets the name under which `ps` and `top` show this process. Has no effect on macOS, which has no
/// such call; a caller that starts the process also sets its first argument.
pub fn set_process_name(name: &str) {
    if cfg!(target_os = "linux") {
        let _ = std::fs::write("/proc/self/comm", name);
    }
}
