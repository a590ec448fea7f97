//! Importing: servers that other clients list are added to our configuration, and the clients get one
//! entry for all of them.
//!
//! Every change is planned as text first. Changes are written to the disk only through a [`Journal`],
//! which can undo them.

mod diff;
mod found;
mod naming;
mod plan;
mod receive;

pub use clients::{
    Backup, ClientCommand, ClientProgram, EntryScope, Home, ImportedServer, Installed, Journal,
    LeftOut, Run, ServerEntry, System, UndoOutcome, Undone, get, list, read_any_file, read_piped,
    read_text,
};
pub use diff::difference;
pub use found::{Discovery, Own, PACKAGE, discover, serves_as_us, sort_out};
pub use plan::{ClientPlan, plan_clients};
pub use receive::{ImportOptions, Received, Receiving, receive};

#[cfg(test)]
mod tests;
