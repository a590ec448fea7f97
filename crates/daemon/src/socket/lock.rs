//! The lock for binding or removing a socket.

use std::{io, path::Path, time::Duration};

use files::{LOCK_WAIT, Lock};

/// The wait of a program that starts a daemon for the lock of the socket.
pub const START_WAIT: Duration = LOCK_WAIT;

/// Takes the lock for binding or removing a socket. Waits at most `wait`: others hold it for the
/// milliseconds that a bind and a spawn take. Blocks.
pub fn lock(socket: &Path, wait: Duration) -> io::Result<Lock> {
    Lock::take_within(&socket.with_file_name("lock"), wait)
}
