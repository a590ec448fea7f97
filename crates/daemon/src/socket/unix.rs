//! A Unix socket in a private folder: its folder, its address, and a check of the peer's user.

use std::{
    fs,
    io::{self, Read as _},
    net::Shutdown,
    os::{
        fd::{AsFd, OwnedFd},
        unix::{fs::PermissionsExt as _, net},
    },
    path::{Path, PathBuf},
    process::ChildStdout,
};

use processes::pipes::{PipeReader, PipeWriter, split_socket};
use rustix::process::geteuid;

use super::hand_over::HandOver;
pub(crate) use super::pass::{PASSES_LISTENERS, receive_listener, send_listener};

/// A connection in the event loop.
pub type Stream = tokio::net::UnixStream;

/// A connection outside the event loop.
pub type BlockingStream = net::UnixStream;

/// A listening socket in the event loop.
pub(crate) type Listener = tokio::net::UnixListener;

/// A listening socket outside the event loop.
pub type BlockingListener = net::UnixListener;

/// The longest path in the address of a socket, without its final zero byte.
#[cfg(not(target_os = "macos"))]
pub(crate) const ADDRESS_BYTES_MAX: usize = 107;
/// The longest path in the address of a socket, without its final zero byte.
#[cfg(target_os = "macos")]
pub(crate) const ADDRESS_BYTES_MAX: usize = 103;

/// Returns the usual folders for sockets of this user, the best one first: `runtime_dir`
/// (`$XDG_RUNTIME_DIR`), its usual value (some clients start programs with few variables), and the
/// folder for temporary files. On macOS that folder (`$TMPDIR`) is the user's own.
pub(crate) fn list_folders(runtime_dir: Option<PathBuf>) -> Vec<PathBuf> {
    let user = geteuid().as_raw();
    let set = runtime_dir.filter(|it| it.is_absolute());
    let usual = if cfg!(target_os = "macos") {
        std::env::temp_dir()
    } else {
        PathBuf::from(format!("/run/user/{user}"))
    };
    let usual = (usual.is_absolute() && usual.is_dir()).then_some(usual);
    let own = set.into_iter().chain(usual).map(|it| it.join("proxy"));
    own.chain([PathBuf::from(format!("/tmp/proxy-{user}"))])
        .collect()
}

/// Connects to the daemon behind a socket; `None` if there is none.
pub fn connect(socket: &Path) -> io::Result<Option<BlockingStream>> {
    use io::ErrorKind::{ConnectionRefused, NotFound};
    match BlockingStream::connect(socket) {
        Err(error) if matches!(error.kind(), NotFound | ConnectionRefused) => Ok(None),
        connected => connected.map(Some),
    }
}

/// Binds the socket. The caller holds the lock, and no process listens.
pub fn bind(socket: &Path) -> io::Result<BlockingListener> {
    match fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = BlockingListener::bind(socket)?;
    fs::set_permissions(socket, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// The pipe over which a daemon that we started reports its failure.
pub(crate) type ReportOutput = ChildStdout;

/// Has `spawn` start a daemon, and connects to it. The socket is bound here, and the daemon takes it with
/// [`take_from_stdin`]: connections, also of other clients, wait in it from the first moment.
pub(crate) fn start(
    socket: &Path,
    spawn: impl FnOnce(HandOver) -> io::Result<ChildStdout>,
) -> io::Result<(Option<BlockingStream>, ReportOutput)> {
    let listener = bind(socket)?;
    let report = spawn(HandOver {
        stdin: OwnedFd::from(listener).into(),
        path: None,
    })?;
    Ok((connect(socket)?, report))
}

/// Reads what a daemon reported before it exited. Waits for it to exit.
pub(crate) fn read_report(mut output: ReportOutput) -> Option<String> {
    let mut text = String::new();
    output.read_to_string(&mut text).ok()?;
    Some(text)
}

/// Listens in the event loop.
pub(crate) fn listen(listener: BlockingListener) -> io::Result<Listener> {
    listener.set_nonblocking(true)?;
    Listener::from_std(listener)
}

/// Waits for the next connection.
pub(crate) async fn accept(listener: &Listener) -> io::Result<Stream> {
    Ok(listener.accept().await?.0)
}

/// Moves a connection into the event loop.
pub(crate) fn into_stream(stream: BlockingStream) -> io::Result<Stream> {
    stream.set_nonblocking(true)?;
    Stream::from_std(stream)
}

/// A connection that stays open until our process exits.
pub type HeldStream = BlockingStream;

/// Moves a connection out of the event loop, which ends before our process does.
pub(crate) fn hold(stream: Stream) -> io::Result<HeldStream> {
    stream.into_std()
}

/// Ends one direction of a connection.
#[derive(Debug)]
pub(crate) struct InputEnd(BlockingStream);

impl InputEnd {
    /// Has the peer read the end of its input, while its output continues. Returns true if that is
    /// possible.
    pub(crate) fn end(&self) -> bool {
        self.0.shutdown(Shutdown::Write).is_ok()
    }
}

/// Returns both directions of a connection, and what ends the one to the peer.
pub(crate) fn split(stream: Stream) -> io::Result<(PipeReader, PipeWriter, InputEnd)> {
    let socket = stream.into_std()?;
    let (input, output) = split_socket(socket.try_clone()?)?;
    Ok((input, output, InputEnd(socket)))
}

/// Returns the socket that our parent process passed as stdin; none if stdin does not listen.
pub(crate) fn take_from_stdin() -> Option<BlockingListener> {
    let stdin = io::stdin();
    if !is_listening(&stdin) {
        return None;
    }
    let socket = stdin.as_fd().try_clone_to_owned().ok()?;
    Some(BlockingListener::from(socket))
}

/// Returns true if a descriptor is a listening socket. macOS does not tell: there, a socket for streams
/// that is bound and has no peer counts.
pub(super) fn is_listening(socket: impl AsFd) -> bool {
    #[cfg(not(target_os = "macos"))]
    let listens = rustix::net::sockopt::socket_acceptconn(socket).unwrap_or(false);
    #[cfg(target_os = "macos")]
    let listens = {
        use rustix::{io::Errno, net};
        let is_stream = net::sockopt::socket_type(&socket) == Ok(net::SocketType::STREAM);
        is_stream
            && net::getsockname(&socket).is_ok()
            && net::getpeername(&socket).err() == Some(Errno::NOTCONN)
    };
    listens
}

/// Returns true if the peer runs as our user. No other user can connect to the socket; this checks
/// it a second time.
pub(crate) fn is_ours(stream: &Stream) -> bool {
    let user = geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == user)
}

/// Returns the path at which a listener listens.
pub(crate) fn path_of_listener(listener: &BlockingListener) -> Option<PathBuf> {
    let address = listener.local_addr().ok()?;
    address.as_pathname().map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::{read_report, start};

    #[test]
    fn a_daemon_that_has_ended_before_the_connection_is_made_has_said_why() {
        let folder = tempfile::tempdir().unwrap();
        let (stream, report) = start(&folder.path().join("sock"), |handed| {
            let mut daemon = Command::new("sh")
                .args(["-c", "echo no configuration"])
                .stdin(handed.stdin)
                .stdout(Stdio::piped())
                .spawn()?;
            daemon.wait()?;
            Ok(daemon.stdout.take().unwrap())
        })
        .unwrap();
        assert!(stream.is_none());
        assert_eq!(read_report(report).unwrap(), "no configuration\n");
    }
}
