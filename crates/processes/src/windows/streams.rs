//! Separates a process from the console and the streams of the process that started it.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io,
    os::windows::{io::AsRawHandle as _, process::CommandExt as _},
    process::{Command, exit},
};

use filedescriptor::{FileDescriptor, StdioDescriptor};

use super::job::hold_children;

const NOWHERE: &str = "NUL";

/// Flags of `CreateProcessW`: without a console; Ctrl-C does not reach it; outside of our job.
const DETACHED_PROCESS: u32 = 0x8;
const CREATE_NEW_PROCESS_GROUP: u32 = 0x200;
const CREATE_BREAKAWAY_FROM_JOB: u32 = 0x0100_0000;

/// Changes nothing: a process that was started by [`stay_behind`] has no console.
pub fn leave_terminal() {}

/// Starts the command apart from us: Ctrl-C in our console does not reach it, and it outlives us.
pub fn keep_apart(command: &mut Command) {
    command.creation_flags(CREATE_NEW_PROCESS_GROUP | CREATE_BREAKAWAY_FROM_JOB);
}

/// Starts the command without a console and outside of our job, so that it outlives us and our client. The
/// start fails if our client has us in a job that no process may leave.
pub fn stay_behind(command: &mut Command) {
    command.creation_flags(DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP | CREATE_BREAKAWAY_FROM_JOB);
}

/// Returns the variables without which a program of this system does not run: it finds libraries by them.
pub fn essential_variables() -> Option<(&'static str, OsString)> {
    Some(("SYSTEMROOT", std::env::var_os("SYSTEMROOT")?))
}

/// Runs another program in place of this process: waits for it, and exits as it does. It ends with us.
/// Returns only if it cannot be started.
pub fn become_program(command: &mut Command) -> io::Error {
    hold_children();
    match command.status() {
        Ok(status) => exit(status.code().unwrap_or(1)),
        Err(error) => error,
    }
}

/// Changes nothing: a process has the name of its program.
pub fn rename(_: &mut Command, _: impl AsRef<OsStr>) {}

/// Has no process that we start inherit our stdin, stdout and stderr, unless its command says so. Windows
/// gives a child every handle that may be inherited, and those of our streams may: a daemon would keep the
/// pipes of the client that started it. Called before there are threads.
pub fn hide_streams_from_children() {
    let copies = [
        (FileDescriptor::dup(&io::stdin()), StdioDescriptor::Stdin),
        (FileDescriptor::dup(&io::stdout()), StdioDescriptor::Stdout),
        (FileDescriptor::dup(&io::stderr()), StdioDescriptor::Stderr),
    ];
    let mut closed = Vec::new();
    for (copy, stream) in copies {
        let Ok(original) = copy.and_then(|copy| FileDescriptor::redirect_stdio(&copy, stream))
        else {
            continue;
        };
        // Two streams may be one handle, which is closed once.
        let handle = original.as_raw_handle() as usize;
        if closed.contains(&handle) {
            std::mem::forget(original);
        } else {
            closed.push(handle);
            drop(original);
        }
    }
}

/// Closes our stdin: reading it finds its end.
pub fn close_stdin() -> io::Result<()> {
    replace(&File::open(NOWHERE)?, StdioDescriptor::Stdin)
}

/// Closes our stdout, and has `log` take what is written to stderr, such as a panic; `None` drops it.
pub fn close_output(log: Option<File>) -> io::Result<()> {
    let nowhere = || File::options().write(true).open(NOWHERE);
    replace(&nowhere()?, StdioDescriptor::Stdout)?;
    let stderr = log.map_or_else(nowhere, Ok)?;
    replace(&stderr, StdioDescriptor::Stderr)
}

fn replace(file: &File, stream: StdioDescriptor) -> io::Result<()> {
    FileDescriptor::redirect_stdio(file, stream).map_err(io::Error::other)?;
    Ok(())
}
