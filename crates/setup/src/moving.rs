//! Moving in: servers that other clients list come into our configuration, and the clients get
//! one entry for all of them.
//!
//! Everything is planned as texts first. Nothing reaches the disk but through a [`Journal`],
//! which can undo it.

mod diff;
mod found;
mod naming;
mod plan;
mod receive;

pub use clients::{
    Backup, Call, Client, Entry, Home, Installed, Journal, LeftOut, Outcome, Run, Scope, System,
    Taken, Undone, get, list, read_any_file, read_piped, read_text,
};
pub use diff::{Difference, difference};
pub use found::{Discovery, Own, discover, sort_out};
pub use plan::{ClientPlan, plan_clients};
pub use receive::{Received, Receiving, receive};

#[cfg(test)]
mod tests;
