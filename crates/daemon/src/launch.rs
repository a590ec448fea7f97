//! Starts the daemon if there is none: only one, however many clients request it.

use std::{
    env, io,
    path::{Path, PathBuf},
    process::{ChildStdout, Command, Stdio},
};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::{
    identity::{Identity, LaunchOptions},
    socket::{
        BlockingStream, HandOver, ReportOutput, START_WAIT, connect, lock, read_report, start,
    },
};

/// The report of a daemon that failed to start, or failed to fulfil a request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    /// True if the configuration is wrong.
    pub is_usage: bool,
    /// The error message, for people.
    pub text: String,
    /// True if another daemon of the configuration owns the state folder.
    #[serde(default)]
    pub is_owned: bool,
}

impl Report {
    /// Makes the report of a failure for which the configuration is not the cause.
    pub fn failure(text: impl Into<String>) -> Self {
        Self {
            is_usage: false,
            text: text.into(),
            is_owned: false,
        }
    }

    /// Makes the report of a wrong configuration.
    pub fn usage(text: impl Into<String>) -> Self {
        Self {
            is_usage: true,
            ..Self::failure(text)
        }
    }

    /// Reads why a daemon that we started exited without an answer. Waits for it to exit.
    pub(crate) fn read(output: ReportOutput) -> Option<Self> {
        let text = read_report(output).filter(|text| !text.is_empty())?;
        Some(serde_json::from_str(&text).unwrap_or_else(|_| Self::failure(text)))
    }
}

/// A connection, and the output in which a daemon that we started reports its failure. There is no stream
/// if the daemon ended before it could be connected to.
pub(crate) type Connection = (Option<BlockingStream>, Option<ReportOutput>);

/// Connects, and starts the daemon if there is none.
pub(crate) fn connect_or_start(identity: &Identity, socket: &Path) -> io::Result<Connection> {
    if let Some(stream) = connect(socket)? {
        return Ok((Some(stream), None));
    }
    let _lock = lock(socket, START_WAIT)?;
    if let Some(stream) = connect(socket)? {
        return Ok((Some(stream), None));
    }
    let (stream, output) = start(socket, |handed| spawn(identity, handed))?;
    Ok((stream, Some(output)))
}

/// Starts the daemon through an intermediate process that exits at once. So the daemon is not our
/// child, and a client that kills our process tree does not end it for the others.
fn spawn(identity: &Identity, handed: HandOver) -> io::Result<ChildStdout> {
    let mut between = command(&identity.wanted, &["launch"], handed.path.as_deref())
        .stdin(handed.stdin)
        .stdout(Stdio::piped())
        .spawn()?;
    let report = between.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    between.wait()?;
    Ok(report)
}

/// Settings of glibc's allocator (`man 3 mallopt`): a daemon lives for days, and each of the 8 arenas per
/// processor that glibc creates for threads would keep some megabytes after large results. Variables
/// that are already set take precedence; no server inherits them.
const ALLOCATOR: [(&str, &str); 3] = [
    ("MALLOC_ARENA_MAX", "2"),
    ("MALLOC_TRIM_THRESHOLD_", "1048576"),
    ("MALLOC_MMAP_THRESHOLD_", "4194304"),
];

/// Runs the intermediate process: its stdin is the socket, or `socket` the path at which the daemon binds it;
/// its stdout is the pipe for a report.
pub fn launch(wanted: &LaunchOptions, socket: Option<&Path>) -> anyhow::Result<()> {
    let mut daemon = command(wanted, &["run", "--launched"], socket);
    let unset = ALLOCATOR
        .into_iter()
        .filter(|(name, _)| env::var_os(name).is_none());
    daemon.envs(unset);
    daemon.spawn().context("cannot start the daemon")?;
    Ok(())
}

fn command(wanted: &LaunchOptions, verb: &[&str], socket: Option<&Path>) -> Command {
    let mut command =
        Command::new(processes::own_program().unwrap_or_else(|| PathBuf::from("proxy")));
    processes::rename(&mut command, "proxy");
    command.arg("--config").arg(&wanted.config);
    if let Some(folder) = &wanted.state_dir {
        command.arg("--state-dir").arg(folder);
    }
    if let Some(log) = &wanted.log {
        command.arg("--log").arg(log);
    }
    command.arg("daemon").args(verb).stderr(Stdio::null());
    if let Some(path) = socket {
        command.arg("--socket").arg(path);
    }
    processes::stay_behind(&mut command);
    command
}
