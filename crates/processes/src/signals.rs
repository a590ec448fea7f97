//! The signals that a person, a terminal or a service manager sends to this process.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// A request that arrives as a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemRequest {
    /// To stop: SIGTERM.
    Terminate,
    /// To stop: Ctrl-C.
    Interrupt,
    /// The terminal was closed, or a daemon is to read its configuration again: SIGHUP.
    HangUp,
}

/// The requests of one kind that arrived since it was watched.
#[derive(Debug)]
pub struct SystemRequests(Signal);

impl SystemRequest {
    /// Watches for this request; from then on it no longer ends the process. Needs a runtime.
    pub fn watch(self) -> io::Result<SystemRequests> {
        let kind = match self {
            Self::Terminate => SignalKind::terminate(),
            Self::Interrupt => SignalKind::interrupt(),
            Self::HangUp => SignalKind::hangup(),
        };
        Ok(SystemRequests(signal(kind)?))
    }
}

impl SystemRequests {
    /// Waits for the next one; `None` if none can come any more.
    pub async fn next(&mut self) -> Option<()> {
        self.0.recv().await
    }
}
