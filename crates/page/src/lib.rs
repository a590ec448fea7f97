//! The web page of a daemon, and its API.
//!
//! `proxy web` asks the daemon for an address with a code that is valid once (`entrance.rs`). The page
//! trades the code for a token, and uses the routes of one table (`routes.rs`), from which
//! a test makes `openapi.json`. `guard.rs` has the conditions that every request fulfils, `live.rs` the
//! stream of changes. The files of the page are in `assets/`, and are part of the program.
//!
//! This crate does not know the configuration file: the program changes it ([`Configure`]).

#![cfg_attr(test, allow(clippy::unwrap_used))]
#![warn(missing_docs)]

mod api;
mod assets;
mod attention;
mod caller;
mod changes;
mod collect;
mod configure;
mod entrance;
mod error;
mod guard;
mod hub;
mod kept_port;
mod limits;
mod live;
mod logins;
mod minutes;
mod openapi;
mod page_state;
mod query;
mod reply;
mod routes;
mod server;
mod state;

pub use configure::{Changed, ConfigChange, Configure, NewServerRequest, Refused};
pub use server::Page;
