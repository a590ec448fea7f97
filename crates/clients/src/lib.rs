//! The configuration files of MCP clients: their paths, the servers that they list, and edits that add
//! one entry and remove others without any other change.
//!
//! This crate handles other programs' files. It starts nothing, uses no network and does not know our
//! own configuration: a server that it finds is a [`Server`].

#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod bundle;
mod change;
mod command;
mod disk;
mod document;
mod entry;
mod find;
mod home;
mod journal;
mod merge;
mod moved;
mod read;
mod server;
mod server_json;
mod table;
mod translate;
mod undo;

pub use change::{Change, ChangeError};
pub use command::{Call, Run};
pub use document::{EditError, Format, SyntaxError};
pub use entry::{Entry, Place};
pub use find::{Found, Installed, Reading, find};
pub use home::{Home, System};
pub use journal::{Backup, Journal, KeptSecret};
pub use merge::{is_same, merge};
pub use moved::{MovedUrl, archived_package, moved_url};
pub use read::{ReadError, SHAPES, read_any_file, read_piped, read_text};
pub use server::{LeftOut, Need, Secret, SecretPlace, Server, Taken};
pub use table::{Client, ConfigFile, Scope, get, list};
pub use translate::{find_secrets, translate};
pub use undo::{Outcome, Undone};
