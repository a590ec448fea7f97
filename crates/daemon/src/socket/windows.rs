//! A named pipe that only our user can open, and the private file that has its name. The name is random and
//! new with each daemon, so that no other program can have a pipe with this name ready.

use std::{
    fs, io,
    net::TcpListener,
    os::windows::{fs::OpenOptionsExt as _, io::OwnedHandle},
    path::{Path, PathBuf},
    process::{ChildStdout, Stdio},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use files::write_whole;
use interprocess::os::windows::{
    named_pipe::{
        PipeListenerOptions, PipeMode,
        pipe_mode::Bytes,
        tokio::{DuplexPipeStream, PipeListener},
    },
    security_descriptor::SecurityDescriptor,
};
use processes::pipes::{PipeReader, PipeWriter};
use widestring::U16CString;

use super::{hand_over::HandOver, lock::START_WAIT};

/// A connection in the event loop.
pub type Stream = DuplexPipeStream<Bytes>;

/// A connection outside the event loop.
pub type BlockingStream = OwnedHandle;

/// A connection that stays open until our process exits.
pub type HeldStream = Stream;

/// A pipe in the event loop.
pub(crate) type Listener = PipeListener<Bytes, Bytes>;

/// A pipe outside the event loop.
#[derive(Debug)]
pub struct BlockingListener {
    pipe: OwnedHandle,
    name: String,
    path: PathBuf,
}

/// The thread that reads the output of a daemon that we started, in which it reports its failure.
pub(crate) type ReportOutput = JoinHandle<io::Result<String>>;

/// The longest path of a file.
pub(crate) const ADDRESS_BYTES_MAX: usize = 32_767;

/// False: a socket cannot be handed over.
pub(crate) const PASSES_LISTENERS: bool = false;

/// The start of each name.
const NAMES: &str = r"\\.\pipe\proxy-";

/// The random bytes of a name.
const NAME_BYTES: usize = 16;

/// The bytes that the system buffers in each direction.
const PIPE_BYTES: u32 = 64 * 1024;

/// The wait for a daemon that serves others at this moment, and the interval between two attempts.
const BUSY_WAIT: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A flag of `CreateFileW`, and of its quality of service: the daemon may learn our user, but not act as it.
const FILE_FLAG_OVERLAPPED: u32 = 0x4000_0000;
const SECURITY_IDENTIFICATION: u32 = 0x0001_0000;

/// The error while every instance of a pipe is connected (`ERROR_PIPE_BUSY`).
const PIPE_BUSY: i32 = 231;

/// Returns the usual folders for the files of this user's daemons, the best one first: `runtime_dir`
/// (`$XDG_RUNTIME_DIR`), and those for local data and temporary files of the user's profile.
pub(crate) fn list_folders(runtime_dir: Option<PathBuf>) -> Vec<PathBuf> {
    let local = std::env::var_os("LOCALAPPDATA").map(PathBuf::from);
    let usual = local.into_iter().chain([std::env::temp_dir()]);
    let all = runtime_dir.into_iter().chain(usual);
    let usable = all.filter(|it| it.is_absolute() && it.is_dir());
    usable.map(|it| it.join("proxy")).collect()
}

/// Connects to the daemon behind a file; `None` if there is none. Waits while it is busy; blocks.
pub fn connect(file: &Path) -> io::Result<Option<BlockingStream>> {
    let name = match fs::read_to_string(file) {
        Ok(name) if name.starts_with(NAMES) => name,
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let deadline = Instant::now() + BUSY_WAIT;
    loop {
        let mut options = fs::File::options();
        options.read(true).write(true);
        options.custom_flags(FILE_FLAG_OVERLAPPED);
        options.security_qos_flags(SECURITY_IDENTIFICATION);
        match options.open(&name) {
            Ok(pipe) => return Ok(Some(pipe.into())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.raw_os_error() == Some(PIPE_BUSY) && Instant::now() < deadline => {}
            Err(error) => return Err(error),
        }
        rest();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "no event tells that a pipe exists or has a free instance"
)]
fn rest() {
    thread::sleep(LOOK_EVERY);
}

/// Creates the pipe and its file. The caller holds the lock, and no process listens.
pub fn bind(file: &Path) -> io::Result<BlockingListener> {
    let mut random = [0; NAME_BYTES];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let name = format!("{NAMES}{}", hex::encode(random));
    let pipe = options(&name)?.create_duplex::<Bytes>()?;
    write_whole(file, name.as_bytes())?;
    Ok(BlockingListener {
        pipe: pipe.into(),
        name,
        path: file.to_owned(),
    })
}

/// Only our user may open the pipe, and only from this machine.
fn options(name: &str) -> io::Result<PipeListenerOptions<'_>> {
    let user = processes::own_user().ok_or_else(|| io::Error::other("our user is unknown"))?;
    let access = U16CString::from_str_truncate(format!("D:P(A;;GA;;;{user})"));
    Ok(PipeListenerOptions::new()
        .path(Path::new(name))
        .mode(PipeMode::Bytes)
        .accept_remote(false)
        .input_buffer_size_hint(PIPE_BYTES)
        .output_buffer_size_hint(PIPE_BYTES)
        .security_descriptor(Some(SecurityDescriptor::deserialize(&access)?)))
}

/// Returns none: a pipe with a name is passed by its name.
pub(crate) fn take_from_stdin() -> Option<BlockingListener> {
    None
}

/// Has `spawn` start a daemon, which creates its pipe, and waits until we are connected. The stream is
/// `None` if the daemon ended before.
pub(crate) fn start(
    file: &Path,
    spawn: impl FnOnce(HandOver) -> io::Result<ChildStdout>,
) -> io::Result<(Option<BlockingStream>, ReportOutput)> {
    let mut output = spawn(HandOver {
        stdin: Stdio::null(),
        path: Some(file.to_owned()),
    })?;
    let report = thread::spawn(move || io::read_to_string(&mut output));
    let deadline = Instant::now() + START_WAIT;
    loop {
        // A daemon closes its output when it serves, and when it ends.
        let is_over = report.is_finished();
        match connect(file)? {
            None if !is_over && Instant::now() < deadline => rest(),
            None if !is_over => return Err(io::ErrorKind::TimedOut.into()),
            stream => return Ok((stream, report)),
        }
    }
}

/// Reads what a daemon reported before it exited. Waits for it to exit.
pub(crate) fn read_report(output: ReportOutput) -> Option<String> {
    output.join().ok()?.ok()
}

/// Listens in the event loop.
pub(crate) fn listen(listener: BlockingListener) -> io::Result<Listener> {
    let options = options(&listener.name)?.to_owned()?;
    Listener::from_handle_and_options(listener.pipe, options)
}

/// Waits for the next connection.
pub(crate) async fn accept(listener: &Listener) -> io::Result<Stream> {
    listener.accept().await
}

/// Moves a connection into the event loop.
pub(crate) fn into_stream(stream: BlockingStream) -> io::Result<Stream> {
    Stream::try_from(stream).map_err(|error| io::Error::other(error.to_string()))
}

/// Keeps a connection.
#[expect(clippy::unnecessary_wraps, reason = "it fails on other systems")]
pub(crate) fn hold(stream: Stream) -> io::Result<HeldStream> {
    Ok(stream)
}

/// Stands for the end of one direction, which a pipe does not have.
#[derive(Debug)]
pub(crate) struct InputEnd;

impl InputEnd {
    /// Returns false: both directions of a pipe end together.
    #[expect(clippy::unused_self, reason = "it holds a socket on other systems")]
    pub(crate) fn end(&self) -> bool {
        false
    }
}

/// Returns both directions of a connection.
#[expect(clippy::unnecessary_wraps, reason = "it fails on other systems")]
pub(crate) fn split(stream: Stream) -> io::Result<(PipeReader, PipeWriter, InputEnd)> {
    let (input, output) = stream.split();
    Ok((Box::new(input), PipeWriter::to_named(output), InputEnd))
}

/// Returns true if the peer runs as our user. A daemon's pipe admits no other user; a client checks that the
/// pipe is not of another user's program.
pub(crate) fn is_ours(stream: &Stream) -> bool {
    stream.peer_process_id().is_ok_and(processes::is_same_user)
}

/// Returns the path of the file that has the name of the pipe.
#[expect(clippy::unnecessary_wraps, reason = "it fails on other systems")]
pub(crate) fn path_of_listener(listener: &BlockingListener) -> Option<PathBuf> {
    Some(listener.path.clone())
}

/// Fails: Windows hands over sockets only by calls that are not safe.
pub(crate) async fn send_listener(_: &Stream, _: &TcpListener) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Fails, as [`send_listener`] does.
pub(crate) async fn receive_listener(_: &Stream) -> io::Result<TcpListener> {
    Err(io::ErrorKind::Unsupported.into())
}
