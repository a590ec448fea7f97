//! What tools exist: snapshots on disk, the plan between two of them, the index, search, usage.
//!
//! This room owns every file in a registry folder. It starts no process, opens no socket, knows
//! no MCP types and no clock: surveys and the time are passed in. `catalog.json` is the only
//! truth; the Tantivy index beside it is derived and thrown away whenever it does not fit.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod catalog;
mod categories;
mod commit;
mod disk;
mod entry;
mod generation;
mod index;
mod lessons;
mod limits;
mod meaning;
mod names;
mod plan;
mod recipes;
mod registry;
mod search;
mod shelf;
mod snapshot;
mod usage;
mod view;
mod words;

#[cfg(test)]
mod tests;

pub use catalog::{Catalog, CatalogServer};
pub use categories::within as category_within;
pub use entry::Entry;
pub use generation::{Generation, KnownServer};
pub use index::IndexError;
pub use lessons::{Learned, Lessons};
pub use limits::MEANINGS_MAX;
pub use names::FindError;
pub use plan::{Plan, Planned, plan};
pub use registry::{Options, Registry, RegistryError};
pub use search::{Asked, Evidence, Found, Hit, Kind, Query};
pub use shelf::{Overlay, Shelf, Shelved};
pub use snapshot::{News, Snapshot};
pub use usage::Usage;
pub use view::View;
