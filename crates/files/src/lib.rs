//! Files on disk: in folders that no other user can write to, replaced atomically, locked; logs of
//! bounded size; the form and the TOML tables of a text that is edited; and timestamps in files.
//!
//! This crate does not know the content of any of them.

#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod clock;
mod durable;
mod folder;
mod folder_error;
pub mod form;
mod lock;
mod log;
mod open;
#[cfg(any(test, feature = "power-loss"))]
pub mod power_loss;
pub mod toml;
#[cfg(unix)]
mod unix;
mod user_folder;
mod whole;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use self::unix as system;
#[cfg(windows)]
use self::windows as system;

/// Records an operation on a file for [`power_loss`]; does nothing if that is not compiled.
macro_rules! note {
    ($step:ident($($path:expr),+)) => {
        #[cfg(any(test, feature = "power-loss"))]
        crate::power_loss::note(|| crate::power_loss::FileOperation::$step($($path.to_owned()),+));
    };
}
use note;

pub use durable::{
    Replaced, append_durable, remove_file, replace_unchanged, resolve, write_durable,
    write_new_durable,
};
pub use folder::{own_folder, private_folder};
pub use folder_error::FolderError;
pub use lock::{LOCK_WAIT, Lock};
pub use log::{BoundedLog, LOG_BYTES_MAX, put_aside};
pub use open::{open_to_append, read_text_within};
pub use system::{
    FileId, FileVersion, PATH_DEFAULT, PROGRAM_FOLDERS, SYSTEM_VARIABLES, find_home, find_program,
    free_bytes, is_file_name, is_path, is_pipe, is_private, make_private, open_private,
    open_to_read, own_variables, variable_name,
};
pub use user_folder::UserFolder;
pub use whole::{UNFINISHED, Unfinished, replace_folder, sync_folder, write_whole};
