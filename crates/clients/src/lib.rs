//! The configuration files of MCP clients: their paths, the servers that they list, and edits that add
//! one entry and remove others without any other change.
//!
//! This crate edits other programs' files. It starts no process, uses no network and does not
//! depend on our own configuration: a server that it finds is a [`TranslatedServer`].

#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod bundle;
mod change;
mod client_file;
mod command;
mod disk;
mod document;
mod entry;
mod find;
mod home;
mod journal;
mod merge;
mod read;
mod server;
mod table;
mod translate;
mod undo;

pub use change::{Change, ChangeError};
pub use client_file::ClientFile;
pub use command::{ClientCommand, Run};
pub use document::{EditError, Format, SyntaxError};
pub use entry::{EntryPlace, ServerEntry};
pub use find::{ClientEntries, Installed, find};
pub use home::{Home, System};
pub use journal::{Backup, Journal, KeptSecret};
pub use merge::{describe_spelling, is_same, list_differences, merge};
pub use read::{ReadError, SHAPES, read_any_file, read_piped, read_text};
pub use server::{ImportedServer, LeftOut, Need, TranslatedServer};
pub use table::{ClientProgram, ConfigFile, EntryScope, get, list};
pub use translate::translate;
pub use undo::{UndoOutcome, Undone};
