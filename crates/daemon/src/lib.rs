//! One process for every client of a configuration.
//!
//! `proxy serve` is a [`relay`]: it finds the daemon's socket ([`place`], [`reach`]), starts the daemon
//! if none runs ([`launch`]), identifies itself ([`hello`]) and passes lines. The daemon ([`host`]) has
//! the [`Gateway`](gateway::Gateway) that all sessions share. For `proxy serve --http` ([`hold`]) it
//! also serves HTTP (`listeners`). For `proxy web` it opens its [`page`].
//!
//! This crate depends neither on the command line nor on the terminal.

#![cfg_attr(test, allow(clippy::unwrap_used))]
#![warn(missing_docs)]

pub mod api;
pub mod hello;
pub mod hold;
pub mod host;
pub mod identity;
pub mod launch;
mod listeners;
pub mod log;
pub mod owner;
pub mod page;
pub mod place;
pub mod reach;
pub mod relay;
pub mod running;
pub mod socket;
pub mod status;

use std::time::Duration;

/// The settings of the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DaemonSettings {
    /// The time that it keeps running without a client; none: for ever.
    pub linger: Option<Duration>,
}
