//! Our own executable, for helpers that run in a separate process, and the name of our process.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    process::Stdio,
};

use tokio::process::{Child, Command};

use crate::essential_variables;

/// Returns the path of our executable. On Linux the link is valid even after an upgrade replaced
/// the file.
pub fn own_program() -> Option<PathBuf> {
    let link = PathBuf::from("/proc/self/exe");
    if cfg!(unix) && link.exists() {
        return Some(link);
    }
    std::env::current_exe().ok()
}

/// Starts a helper with pipes for its stdin and stdout, and without our environment. It is killed when
/// the returned value is dropped.
pub fn start_helper(program: &Path, arguments: &[OsString]) -> io::Result<Child> {
    Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(essential_variables())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
}

/// Sets the name under which `ps` and `top` show this process. Has no effect on macOS, which has no
/// such call; a caller that starts the process also sets its first argument.
pub fn set_process_name(name: &str) {
    if cfg!(target_os = "linux") {
        let _ = std::fs::write("/proc/self/comm", name);
    }
}
