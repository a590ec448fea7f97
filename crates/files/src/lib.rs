//! Files of ours on disk: in folders that nobody else writes to, whole or absent, locked, and logs
//! of bounded size.
//!
//! This room does not know what is in any of them.

#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod folder;
mod lock;
mod log;
mod open;
mod whole;

pub use folder::{FolderError, own_folder, private_folder};
pub use lock::Lock;
pub use log::{BoundedLog, LOG_BYTES_MAX, put_aside};
pub use open::open_to_append;
pub use whole::{UNFINISHED, Unfinished, sync_folder, write_whole};
