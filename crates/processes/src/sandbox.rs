//! Drops a process's write and network permissions before it executes another program.
//!
//! To confine a child, a caller starts a helper of its own program that calls [`enter`] and then
//! executes the child. Dropped permissions stay dropped for the child and all its descendants.

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

/// The permissions that a process keeps. Read access is not restricted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Permissions {
    /// True if the process may open sockets of any kind; otherwise it may open none, including unix
    /// sockets.
    pub network: bool,
    /// The folders, with their contents, and the files that the process may write. A few devices
    /// that store no data, such as `/dev/null`, are also writable.
    pub write: Vec<PathBuf>,
}

/// The reason why a process cannot be confined. Some permissions were not dropped, so the process
/// must not continue.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// This system or kernel does not support confinement.
    #[error("this system cannot confine a process: {0}")]
    Unavailable(String),
    /// A path that should be writable cannot be opened.
    #[error("cannot open {}, which it may write: {why}", path.display())]
    Path {
        /// The path as the caller gave it.
        path: PathBuf,
        /// The error of the system.
        why: String,
    },
    /// The kernel refused a feature that it reported as available.
    #[error("cannot confine the process: {0}")]
    Failed(String),
}
