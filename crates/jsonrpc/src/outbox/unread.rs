//! Counts the unread bytes in a pipe that has no reader any more.

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::ioctl_fionread,
};
use tokio::net::unix::pipe;

/// Returns the number of unread bytes in a pipe without readers; `None` while a reader exists.
pub(super) fn left_unread(pipe: &pipe::Sender) -> Option<u64> {
    let mut ends = [PollFd::new(pipe, PollFlags::OUT)];
    poll(&mut ends, Some(&Timespec::default())).ok()?;
    let has_no_reader = ends[0].revents().contains(PollFlags::ERR);
    has_no_reader.then(|| ioctl_fionread(pipe).ok()).flatten()
}
