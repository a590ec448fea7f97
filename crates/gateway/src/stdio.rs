//! Our own stdin and stdout, without a thread between them and the event loop where the system
//! allows it.

use jsonrpc::Sink;
use processes::pipes;
use tokio::io::AsyncRead;

/// The bytes that the system is asked to buffer towards the client, so that a large answer is
/// handed over in few steps. Best effort.
const PIPE_BYTES: usize = 1024 * 1024;

/// The bytes that a client sends.
pub type Input = Box<dyn AsyncRead + Send + Unpin>;

/// The client's messages. Clients give us a pipe (most) or a socket (Node); anything else, such
/// as a file or a terminal, is read through a thread.
pub fn input() -> Input {
    match pipes::stdin() {
        Some(pipe) => Box::new(pipe),
        None => Box::new(tokio::io::stdin()),
    }
}

/// The way back, likewise.
pub fn output() -> Sink {
    match pipes::stdout(PIPE_BYTES) {
        Some(pipe) => Sink::Pipe(pipe),
        None => Sink::stream(tokio::io::stdout()),
    }
}
