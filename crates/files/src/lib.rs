//! Files on disk: in folders that nobody else writes to, whole or absent, locked; logs of bounded
//! size; the form of a text that is edited; and the times that are written into files.
//!
//! This crate does not know what else is in any of them.

#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod clock;
mod durable;
mod folder;
pub mod form;
mod lock;
mod log;
mod open;
#[cfg(any(test, feature = "power-loss"))]
pub mod power_loss;
mod whole;

/// Notes for [`power_loss`] what is done to a file; nothing where that is left out.
macro_rules! note {
    ($step:ident($($path:expr),+)) => {
        #[cfg(any(test, feature = "power-loss"))]
        crate::power_loss::note(|| crate::power_loss::Step::$step($($path.to_owned()),+));
    };
}
use note;

pub use durable::{
    Replaced, append_durable, remove_file, replace_unchanged, resolve, write_durable,
    write_new_durable,
};
pub use folder::{FolderError, own_folder, private_folder};
pub use lock::{LOCK_WAIT, Lock};
pub use log::{BoundedLog, LOG_BYTES_MAX, put_aside};
pub use open::{open_to_append, open_to_read};
pub use whole::{UNFINISHED, Unfinished, sync_folder, write_whole};
