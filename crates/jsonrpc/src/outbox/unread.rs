//! What is left in a pipe that nobody reads any more.

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::ioctl_fionread,
};
use tokio::net::unix::pipe;

/// The bytes in a pipe that nobody reads any more, and nobody will; `None` while somebody may.
pub(super) fn left_unread(pipe: &pipe::Sender) -> Option<u64> {
    let mut ends = [PollFd::new(pipe, PollFlags::OUT)];
    poll(&mut ends, Some(&Timespec::default())).ok()?;
    let has_no_reader = ends[0].revents().contains(PollFlags::ERR);
    has_no_reader.then(|| ioctl_fionread(pipe).ok()).flatten()
}
