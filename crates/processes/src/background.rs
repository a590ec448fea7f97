//! Separates a process from the terminal and the streams of the process that started it.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io,
    os::unix::process::CommandExt as _,
    process::Command,
};

use rustix::{
    process::setsid,
    stdio::{dup2_stderr, dup2_stdin, dup2_stdout},
};

const NOWHERE: &str = "/dev/null";

/// Leaves the terminal: its signals no longer reach this process, and closing it does not end the
/// process.
pub fn leave_terminal() {
    let _ = setsid();
}

/// Starts the command apart from us, in a process group of its own: Ctrl-C in our terminal does not
/// reach it.
pub fn keep_apart(command: &mut Command) {
    command.process_group(0);
}

/// Changes nothing: a program that we start inherits only its own streams.
pub fn hide_streams_from_children() {}

/// Changes nothing: a process that we start outlives us unless it is told to end.
pub fn stay_behind(_: &mut Command) {}

/// Returns the variables without which a program of this system does not run.
pub fn essential_variables() -> Option<(&'static str, OsString)> {
    None
}

/// Becomes another program, in this process. Returns only if that fails.
pub fn become_program(command: &mut Command) -> io::Error {
    command.exec()
}

/// Sets the name under which `ps` shows the command; `argv[0]`.
pub fn rename(command: &mut Command, name: impl AsRef<OsStr>) {
    command.arg0(name);
}

/// Closes our stdin: reading it finds its end.
pub fn close_stdin() -> io::Result<()> {
    Ok(dup2_stdin(File::open(NOWHERE)?)?)
}

/// Closes our stdout, and has `log` take what is written to stderr, such as a panic; `None` drops it.
pub fn close_output(log: Option<File>) -> io::Result<()> {
    let nowhere = || File::options().write(true).open(NOWHERE);
    dup2_stdout(nowhere()?)?;
    let stderr = log.map_or_else(nowhere, Ok)?;
    Ok(dup2_stderr(stderr)?)
}
