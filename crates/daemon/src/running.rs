//! The running daemons of a configuration, and one that does not answer.

use std::{error, fmt, io, path::PathBuf, time::Duration};

use tokio::time::timeout;

use crate::{
    hello::{DaemonReply, Purpose, greet},
    place::DaemonFolder,
    socket::{BlockingStream, Stream, connect},
};

/// A daemon that accepts connections.
#[derive(Debug)]
pub struct RunningDaemon {
    stream: BlockingStream,
    /// The path of its socket.
    pub socket: PathBuf,
    /// Its process id; none if it does not own the state folder.
    pid: Option<u32>,
}

/// Connects to each running daemon of a configuration, the usual one first.
pub fn connect_to_all(
    place: &DaemonFolder,
) -> impl Iterator<Item = io::Result<RunningDaemon>> + use<> {
    let owner = place.find_owner();
    place.sockets().into_iter().filter_map(move |socket| {
        let stream = connect(&socket).transpose()?;
        let owner = owner.as_ref().filter(|it| it.socket == socket);
        Some(stream.map(|stream| RunningDaemon {
            stream,
            pid: owner.map(|it| it.pid),
            socket,
        }))
    })
}

impl RunningDaemon {
    /// Wraps a connection to the daemon at this socket.
    pub(crate) fn new(stream: BlockingStream, socket: PathBuf, place: &DaemonFolder) -> Self {
        let owner = place.find_owner().filter(|it| it.socket == socket);
        Self {
            stream,
            pid: owner.map(|it| it.pid),
            socket,
        }
    }

    /// Sends a purpose, and returns the answer; `None` if the daemon ended meanwhile.
    ///
    /// # Errors
    ///
    /// A daemon that does not answer within `wait` is a [`SilentDaemon`]. The purpose may be fulfilled later.
    pub async fn greet(
        self,
        purpose: Purpose,
        wait: Duration,
    ) -> io::Result<Option<(Stream, DaemonReply)>> {
        let Self {
            stream,
            socket,
            pid,
        } = self;
        match timeout(wait, greet(stream, purpose)).await {
            Ok(Err(error)) if error.kind() != io::ErrorKind::TimedOut => Err(error),
            Ok(Ok(answered)) => Ok(answered),
            _ => Err(io::Error::other(SilentDaemon { pid, socket, wait })),
        }
    }
}

/// A daemon that accepts connections and does not answer.
#[derive(Debug)]
pub struct SilentDaemon {
    pid: Option<u32>,
    socket: PathBuf,
    wait: Duration,
}

impl SilentDaemon {
    /// Returns the command that helps.
    pub fn next(&self) -> String {
        match self.pid {
            Some(pid) if processes::is_stopped(pid) => format!("kill -CONT {pid}"),
            Some(pid) => format!("kill {pid}"),
            None => "proxy daemon logs".to_owned(),
        }
    }
}

impl fmt::Display for SilentDaemon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.wait.as_secs();
        let Some(pid) = self.pid else {
            let socket = self.socket.display();
            return write!(
                f,
                "the daemon at {socket} did not answer within {seconds} s; `proxy daemon logs` prints \
                 its log"
            );
        };
        write!(
            f,
            "the daemon, pid {pid}, did not answer within {seconds} s"
        )?;
        if processes::is_stopped(pid) {
            return write!(
                f,
                ": a signal has stopped it; `kill -CONT {pid}` continues it"
            );
        }
        write!(
            f,
            "; `kill {pid}` ends it, and the next client starts another; `proxy daemon logs` prints its log"
        )
    }
}

impl error::Error for SilentDaemon {}
