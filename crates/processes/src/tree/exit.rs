//! Waits for the exit of a child.

use std::{io, os::unix::process::ExitStatusExt as _, process::ExitStatus};

use rustix::process::{Pid, WaitId, WaitIdOptions, WaitIdStatus, waitid};
use tokio::{
    process::Child,
    signal::unix::{SignalKind, signal},
};

/// Waits until a child has exited, without reaping it: it stays a zombie and keeps its pid.
pub(super) async fn exit(child: &Child) -> io::Result<ExitStatus> {
    // Created before the first check, so that an exit after the check is not missed.
    let mut exits = signal(SignalKind::child())?;
    loop {
        if let Some(status) = look(child)? {
            return Ok(status);
        }
        exits.recv().await.ok_or_else(gone)?;
    }
}

/// Returns the exit status if the child has exited. Fails if it was reaped already.
pub(super) fn look(child: &Child) -> io::Result<Option<ExitStatus>> {
    let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let id = id.ok_or_else(gone)?;
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let status = waitid(WaitId::Pid(id), options)?;
    Ok(status.as_ref().map(as_status))
}

fn gone() -> io::Error {
    io::Error::from(rustix::io::Errno::CHILD)
}

/// Converts the status to the type that `wait` returns.
fn as_status(status: &WaitIdStatus) -> ExitStatus {
    let by_signal = status.terminating_signal();
    let code = status.exit_status().unwrap_or_default() << 8;
    ExitStatus::from_raw(by_signal.unwrap_or(code))
}
