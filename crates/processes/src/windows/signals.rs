//! The events that a person or the system sends to this process by its console.

use std::{future::pending, io};

use tokio::signal::windows::{
    CtrlBreak, CtrlC, CtrlClose, CtrlShutdown, ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown,
};

/// A request that arrives as an event of the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemRequest {
    /// To stop: Ctrl-Break, the window was closed, or the system shuts down.
    Terminate,
    /// To stop: Ctrl-C.
    Interrupt,
    /// Never arrives: no event asks to read a configuration again. `proxy` reads it when its file changes.
    HangUp,
}

/// The requests of one kind that arrived since it was watched.
#[derive(Debug)]
pub struct SystemRequests(Events);

#[derive(Debug)]
enum Events {
    Terminate(CtrlBreak, CtrlClose, CtrlShutdown),
    Interrupt(CtrlC),
    None,
}

impl SystemRequest {
    /// Watches for this request; from then on it no longer ends the process. Needs a runtime.
    pub fn watch(self) -> io::Result<SystemRequests> {
        Ok(SystemRequests(match self {
            Self::Terminate => Events::Terminate(ctrl_break()?, ctrl_close()?, ctrl_shutdown()?),
            Self::Interrupt => Events::Interrupt(ctrl_c()?),
            Self::HangUp => Events::None,
        }))
    }
}

impl SystemRequests {
    /// Waits for the next one; `None` if none can come any more.
    pub async fn next(&mut self) -> Option<()> {
        match &mut self.0 {
            Events::Terminate(by_break, close, shutdown) => tokio::select! {
                event = by_break.recv() => event,
                event = close.recv() => event,
                event = shutdown.recv() => event,
            },
            Events::Interrupt(events) => events.recv().await,
            Events::None => pending().await,
        }
    }
}
