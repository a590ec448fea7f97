//! The two lines before a connection to the daemon is a session: who comes, and what for.

use std::{io, os::unix::net::UnixStream as StdStream, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::UnixStream,
    time::timeout,
};

use super::{environment::Taken, identity::Build};

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
    },
    /// To hear who is served, and by which servers.
    Status,
    /// End now, whoever is served.
    Stop,
}

/// The first line of the daemon.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The session is open. Whether it is the right daemon for the client's secrets is the
    /// client's to see: so they go nowhere.
    Welcome {
        /// The variables of the environment that the daemon was started with, as digests.
        taken: Taken,
    },
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
    let mut line = Vec::new();
    let reading = async {
        // The other side waits for our answer, so nothing follows the line: byte by byte would
        // be right, and larger pieces are as well.
        let mut piece = [0; 4096];
        loop {
            let count = stream.read(&mut piece).await?;
            line.extend_from_slice(&piece[..count]);
            if count == 0 || line.ends_with(b"\n") || line.len() > LINE_BYTES_MAX {
                return Ok::<_, io::Error>(());
            }
        }
    };
    match timeout(HELLO_WAIT, reading).await {
        Ok(Ok(())) if line.is_empty() => return Ok(None),
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
        Ok(read) => read?,
        Err(_) => return Err(io::ErrorKind::TimedOut.into()),
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
