//! The two lines that begin a connection to the daemon: the client and its purpose, and the answer.

use std::{io, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    time::timeout,
};

use fleet::Variables;
use gateway::{ProjectRule, api::ApiRequest, policy::ClientPolicies};

use super::{
    identity::Build,
    launch::Report,
    socket::{BlockingStream, Stream, into_stream, is_ours},
    status::DaemonStatus,
};

/// The maximum length of a line. Ours are far shorter; a longer one is from another program.
const LINE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The variable with the name of a client, in place of the one that it announces. It sets no key of the
/// configuration: clients with different names share a daemon.
pub const CLIENT_VARIABLE: &str = "PROXY_CLIENT";

/// The timeout of the first line: both processes run on one machine.
pub const HELLO_WAIT: Duration = Duration::from_secs(10);

/// The first line of a client of the daemon. A daemon reads the build before the purpose, which another build may
/// write in another form.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Hello<P = Purpose> {
    /// The build of the client's program.
    pub build: Build,
    /// The process id of the client.
    pub pid: u32,
    /// The purpose of the connection.
    pub purpose: P,
}

/// The limits that a client sets for itself.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Narrowing {
    /// The profile of `serve --profile`.
    pub profile: Option<String>,
    /// The file of the project that it works in.
    pub project: Option<ProjectRule>,
}

impl Narrowing {
    /// Checks that the profiles are configured. The error is for people.
    pub fn check(&self, clients: &ClientPolicies) -> Result<(), String> {
        let known: Vec<&str> = clients.profiles().map(|(name, _)| name).collect();
        let of_project = self.project.as_ref().and_then(|it| it.profile.as_ref());
        let mut named = self.profile.iter().chain(of_project);
        let Some(name) = named.find(|name| !known.contains(&name.as_str())) else {
            return Ok(());
        };
        let next = match known.as_slice() {
            [] => "the configuration has no table `[profiles.NAME]`".to_owned(),
            known => format!("there are: {}", known.join(", ")),
        };
        Err(format!("no profile {name:?}; {next}"))
    }
}

/// The purpose of a client of the daemon.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// MCP follows.
    Session {
        /// The working directory of the client.
        cwd: Option<PathBuf>,
        /// Its environment: all of it, since the configuration may name other variables while the
        /// session lasts.
        variables: Variables,
        /// The profile and the project of the client.
        narrowing: Narrowing,
    },
    /// Asks for the connected clients and their servers.
    Status,
    /// A request of a command to the API.
    Api {
        /// The working directory of the command.
        cwd: Option<PathBuf>,
        /// Its environment.
        variables: Variables,
        /// True: an older daemon makes room for one of our build.
        replaces: bool,
        /// The request of the command.
        request: ApiRequest,
    },
    /// Asks to serve HTTP until the connection ends.
    Http(HttpRequest),
    /// Asks for an address that opens the web page once.
    Page,
    /// Waits until the configuration file as it is now is in effect.
    Settle,
    /// A login or a secret may have changed: servers that wait for one are started again.
    LookAgain,
    /// Ends the daemon now, even if clients are connected.
    Stop,
    /// The same, and processes for which we serve HTTP ask the next daemon.
    Restart,
}

/// The request of a `serve --http`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HttpRequest {
    /// The address to listen on; none: that of the configuration.
    pub listen: Option<String>,
    /// The environment of the requesting process: tokens are filled in from it.
    pub variables: Variables,
    /// The process holds the listening socket and hands it over.
    #[serde(default)]
    pub has_socket: bool,
}

/// The first line of the daemon.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DaemonReply {
    /// The session is open.
    Welcome {
        /// True if clients may also connect over HTTP; they cannot start a daemon.
        serves_http: bool,
    },
    /// The client is to hand over its listening socket; the answer follows.
    SendSocket,
    /// HTTP is served.
    Listening {
        /// The address that a client's configuration would name.
        url: String,
        /// The address listened on; none if it is that of the configuration.
        address: Option<String>,
    },
    /// This address opens the web page once.
    Page {
        /// The address, with a code that no log may have.
        url: String,
    },
    /// The request is handled; its reply follows.
    Running,
    /// The request failed.
    Refused(Report),
    /// The daemon is of another build. If `leaves`, it is older and accepts no new clients from now
    /// on; another daemon may be started in its place. Otherwise it is newer.
    OtherBuild {
        /// True if the daemon accepts no new clients from now on.
        leaves: bool,
        /// The daemon's version.
        version: String,
    },
    /// The connected clients and their servers.
    Status(Box<DaemonStatus>),
    /// The notification was handled.
    Noted,
    /// The configuration file is in effect, or why it is not.
    Settled {
        /// A sentence without a full stop, perhaps with a line for each mistake.
        problem: Option<String>,
    },
    /// The daemon ends.
    Stopping,
}

/// Writes one line.
pub async fn send_line(
    stream: &mut (impl AsyncWrite + Unpin),
    what: &impl Serialize,
) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    stream.write_all(&line).await
}

/// Reads one line and not a byte further; `None` if the other side closed first.
pub async fn receive_line<T: DeserializeOwned>(
    stream: &mut (impl AsyncRead + Unpin),
) -> io::Result<Option<T>> {
    let heard = timeout(HELLO_WAIT, wait_for_line(stream)).await;
    heard.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// The same, without a timeout.
pub async fn wait_for_line<T: DeserializeOwned>(
    stream: &mut (impl AsyncRead + Unpin),
) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    // The other side waits for our answer, so nothing follows the line: reading larger pieces than a
    // byte is safe.
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

/// Sends the hello and reads the answer; `None` if the daemon exited meanwhile.
pub async fn greet(
    stream: BlockingStream,
    purpose: Purpose,
) -> io::Result<Option<(Stream, DaemonReply)>> {
    let mut stream = into_stream(stream)?;
    if !is_ours(&stream) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let hello = Hello {
        build: Build::ours(),
        pid: std::process::id(),
        purpose,
    };
    if send_line(&mut stream, &hello).await.is_err() {
        return Ok(None);
    }
    let answer = receive_line(&mut stream).await?;
    Ok(answer.map(|answer| (stream, answer)))
}
