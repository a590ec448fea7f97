//! The two lines before a connection to the daemon is a session: who comes, and what for.

use std::{io, os::unix::net::UnixStream as StdStream, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::UnixStream,
    time::timeout,
};

use fleet::Variables;
use gateway::shell::ShellRequest;

use super::{identity::Build, launch::Report};

/// A line of ours is far shorter; past this somebody else speaks.
const LINE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Between two processes of one machine.
pub const HELLO_WAIT: Duration = Duration::from_secs(10);

/// The first line of a client of the daemon.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Hello {
    /// The program that says it.
    pub build: Build,
    /// Its process.
    pub pid: u32,
    /// What it wants.
    pub purpose: Purpose,
}

/// The purpose of a client of the daemon.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// MCP follows.
    Session {
        /// Where the client works.
        cwd: Option<PathBuf>,
        /// Its environment: all of it, since the configuration may name other variables while the
        /// session lasts.
        variables: Variables,
    },
    /// To hear who is served, and by which servers.
    Status,
    /// A command of the command line.
    Shell {
        /// The folder it is run in.
        cwd: Option<PathBuf>,
        /// Its environment.
        variables: Variables,
        /// What is asked.
        request: ShellRequest,
    },
    /// HTTP is to be served until the connection ends.
    Http {
        /// The address; none: what the configuration says.
        listen: Option<String>,
        /// Those of the process that asks: tokens are filled in from these.
        variables: Variables,
        /// The process holds the socket that listens there and hands it over.
        #[serde(default)]
        has_socket: bool,
    },
    /// A login or a secret may be another than it was: servers that wait for one begin anew.
    LookAgain,
    /// End now, whoever is served.
    Stop,
    /// The same, and whoever has us serve HTTP is to ask the next daemon.
    Restart,
}

/// The first line of the daemon.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The session is open.
    Welcome {
        /// Clients may come over HTTP too, who cannot start a daemon.
        serves_http: bool,
    },
    /// The socket that listens is to be handed over; the answer follows.
    SendSocket,
    /// HTTP is served.
    Listening {
        /// The address that a client's configuration would name.
        url: String,
        /// What is listened at; none where the configuration says so anyway.
        address: Option<String>,
    },
    /// The command is run; its answer follows.
    Running,
    /// What was asked for cannot be had.
    Refused(Report),
    /// We are of another build. `leaves`: we are older, and take no new clients from now on; a
    /// daemon may be started in our place. Else we are newer.
    OtherBuild {
        /// Whether the daemon takes no new clients from now on.
        leaves: bool,
        /// The daemon's version.
        version: String,
    },
    /// Who is served, and by which servers.
    Status(serde_json::Value),
    /// What was told is taken in.
    Noted,
    /// We end.
    Stopping,
}

/// Both ends are ours: nobody else can connect to the socket, and this says so once more.
pub fn is_ours(stream: &UnixStream) -> bool {
    let user = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == user)
}

/// Writes one line.
pub async fn say(stream: &mut (impl AsyncWrite + Unpin), what: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    stream.write_all(&line).await
}

/// Reads one line and not a byte further; `None` where the other side closed first.
pub async fn hear<T: DeserializeOwned>(
    stream: &mut (impl AsyncRead + Unpin),
) -> io::Result<Option<T>> {
    let heard = timeout(HELLO_WAIT, hear_later(stream)).await;
    heard.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// The same, however long the other side takes.
pub async fn hear_later<T: DeserializeOwned>(
    stream: &mut (impl AsyncRead + Unpin),
) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    // The other side waits for our answer, so nothing follows the line: byte by byte would be
    // right, and larger pieces are as well.
    let mut piece = [0; 4096];
    loop {
        let count = match stream.read(&mut piece).await {
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => 0,
            read => read?,
        };
        line.extend_from_slice(&piece[..count]);
        if count == 0 || line.ends_with(b"\n") || line.len() > LINE_BYTES_MAX {
            break;
        }
    }
    if line.is_empty() {
        return Ok(None);
    }
    serde_json::from_slice(&line).map(Some).map_err(Into::into)
}

/// Says hello and hears the answer; `None` where the daemon left meanwhile.
pub async fn greet(
    stream: StdStream,
    purpose: Purpose,
) -> io::Result<Option<(UnixStream, Answer)>> {
    stream.set_nonblocking(true)?;
    let mut stream = UnixStream::from_std(stream)?;
    if !is_ours(&stream) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let hello = Hello {
        build: Build::ours(),
        pid: std::process::id(),
        purpose,
    };
    if say(&mut stream, &hello).await.is_err() {
        return Ok(None);
    }
    let answer = hear(&mut stream).await?;
    Ok(answer.map(|answer| (stream, answer)))
}
