//! Clients' own programs, which change the files that belong to them.

use std::{
    io,
    process::{Output, Stdio},
    time::Duration,
};

use setup::moving::ClientCommand;
use tokio::io::AsyncWriteExt as _;

use crate::event_loop::run_async;

/// Time for a client's own program to change its file: it starts a runtime first.
const PROGRAM_TIME_MAX: Duration = Duration::from_mins(1);

/// Returns true if the program is in a folder of `PATH`.
pub(super) fn is_on_path(program: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
}

/// Runs a client's own program to its end, with a timeout.
pub(super) fn run_program(call: &ClientCommand) -> Result<(), String> {
    let done = run_async(async {
        let mut command = tokio::process::Command::new(&call.program);
        command
            .args(&call.args)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(folder) = &call.folder {
            command.current_dir(folder);
        }
        let mut child = command.spawn()?;
        if let (Some(mut stdin), Some(text)) = (child.stdin.take(), &call.stdin) {
            stdin.write_all(text.as_bytes()).await?;
        }
        tokio::time::timeout(PROGRAM_TIME_MAX, child.wait_with_output()).await?
    });
    let what = format!("`{} {}`", call.program, call.args.join(" "));
    let output: io::Result<Output> = done.map_err(|error| error.to_string())?;
    let output = output.map_err(|error| format!("{what}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = printable::mask_lines(String::from_utf8_lossy(&output.stderr).trim());
    Err(format!("{what} failed: {}", said.join("\n")))
}
