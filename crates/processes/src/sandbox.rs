//! Drops a process's write and network permissions before it executes another program.
//!
//! To confine a child, a caller starts a helper of its own program that calls [`enter`] and then
//! executes the child: dropped permissions stay dropped, for it and for all its descendants.

use std::path::PathBuf;

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
mod elsewhere;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod linux;

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
pub use elsewhere::{check, enter};
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub use linux::{check, enter};

/// The permissions that a process keeps. It can read whatever it could read before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Permissions {
    /// It may open sockets of any kind; otherwise none, unix sockets included.
    pub network: bool,
    /// Folders and files that it may write, with all that is below them. Besides them a few devices
    /// without memory, `/dev/null` among them.
    pub write: Vec<PathBuf>,
}

/// The reason why a process cannot be confined. Its permissions were not all dropped: it must not
/// continue.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// This system, or this kernel, has no means.
    #[error("this system cannot confine a process: {0}")]
    Unavailable(String),
    /// A folder that it should write is not there.
    #[error("cannot open {}, which it may write: {why}", path.display())]
    Path {
        /// As it was given.
        path: PathBuf,
        /// The error of the system.
        why: String,
    },
    /// The kernel refused a feature that it reported as available.
    #[error("cannot confine the process: {0}")]
    Failed(String),
}
