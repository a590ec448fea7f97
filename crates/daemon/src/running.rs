//! The running daemons of a configuration, and one that does not answer.

use std::{error, fmt, io, path::PathBuf, time::Duration};

use tokio::time::{sleep, timeout};

use crate::{
    hello::{DaemonReply, HELLO_WAIT, Purpose, greet},
    place::DaemonFolder,
    socket::{BlockingStream, Stream, connect},
};

/// The interval of looking whether a signal has stopped a daemon that has not answered. A machine that is busy
/// delays an answer for longer, and then the process is not stopped.
const LOOK_EVERY: Duration = Duration::from_secs(1);

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
    /// A daemon that does not answer in time, or that a signal has stopped, is a [`SilentDaemon`]. It may
    /// fulfil the purpose later.
    pub async fn greet(self, purpose: Purpose) -> io::Result<Option<(Stream, DaemonReply)>> {
        let Self {
            stream,
            socket,
            pid,
        } = self;
        let is_stopped = tokio::select! {
            answered = timeout(HELLO_WAIT, greet(stream, purpose)) => match answered {
                Ok(Err(error)) if error.kind() != io::ErrorKind::TimedOut => return Err(error),
                Ok(Ok(answered)) => return Ok(answered),
                _ => false,
            },
            () = wait_until_stopped(pid) => true,
        };
        Err(io::Error::other(SilentDaemon {
            pid,
            socket,
            is_stopped,
        }))
    }
}

/// Returns when a signal has stopped the process; never if its id is not known.
async fn wait_until_stopped(pid: Option<u32>) {
    loop {
        sleep(LOOK_EVERY).await;
        if pid.is_some_and(processes::is_stopped) {
            return;
        }
    }
}

/// A daemon that accepts connections and does not answer.
#[derive(Debug)]
pub struct SilentDaemon {
    pid: Option<u32>,
    socket: PathBuf,
    /// True if a signal has stopped its process.
    is_stopped: bool,
}

impl SilentDaemon {
    /// Returns the command that helps.
    pub fn next(&self) -> String {
        match self.pid {
            Some(pid) if self.is_stopped => format!("kill -CONT {pid}"),
            Some(pid) => format!("kill {pid}"),
            None => "proxy logs".to_owned(),
        }
    }
}

impl fmt::Display for SilentDaemon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let next = self.next();
        let whose = match self.pid {
            Some(pid) => format!("the daemon, pid {pid},"),
            None => format!("the daemon at {}", self.socket.display()),
        };
        if self.is_stopped {
            let why = "does not answer: a signal has stopped it";
            return write!(f, "{whose} {why}; `{next}` continues it");
        }
        let seconds = HELLO_WAIT.as_secs();
        write!(f, "{whose} did not answer within {seconds} s; ")?;
        if self.pid.is_some() {
            write!(f, "`{next}` ends it, and the next client starts another; ")?;
        }
        f.write_str("`proxy logs` prints its log")
    }
}

impl error::Error for SilentDaemon {}
