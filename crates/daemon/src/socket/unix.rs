//! A Unix socket in a private folder: its folder, its address, and a check of the peer's user.

use std::{
    fs, io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::{fs::PermissionsExt as _, net},
    },
    path::{Path, PathBuf},
    process::Stdio,
};

use rustix::process::geteuid;

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
    match BlockingStream::connect(socket) {
        Ok(stream) => Ok(Some(stream)),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
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

/// Returns the socket as the stdin of a child, which takes it with [`take_from_stdin`].
pub(crate) fn hand_over(listener: BlockingListener) -> Stdio {
    OwnedFd::from(listener).into()
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
    listener
        .local_addr()
        .ok()?
        .as_pathname()
        .map(Path::to_owned)
}

/// Returns the path of the socket to which a stream was connected.
pub(crate) fn path_of_peer(stream: &BlockingStream) -> Option<PathBuf> {
    stream.peer_addr().ok()?.as_pathname().map(Path::to_owned)
}
