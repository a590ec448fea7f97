//! The registry of tools: snapshots on disk, the plan between two of them, the index, search, and
//! usage counts.
//!
//! This crate owns every file in a registry folder. It starts no process, opens no socket, and uses
//! no MCP types and no clock: surveys and the time are passed in. `catalog.json` is the only source
//! of truth; the Tantivy index next to it is derived, and discarded if it does not match.
#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod allow_deny;
mod catalog;
mod categories;
mod commit;
mod disk;
mod embedding;
mod entry;
mod error;
mod feedback;
mod generation;
mod guess;
mod history;
mod index;
mod known_names;
mod known_servers;
mod limits;
mod loaded_servers;
mod loaded_tools;
mod names;
mod pin_book;
mod pins;
mod plan;
mod registry;
mod rename;
mod requests;
mod review;
mod search;
mod seen;
mod server_rules;
mod shared_pins;
mod snapshot;
mod steering;
mod text_map;
mod tool_lock;
mod usage;
mod view;
mod words;

#[cfg(test)]
mod tests;

pub use catalog::{CatalogServer, ListNote, OfferNote, ServerCatalog};
pub use categories::within as category_within;
pub use embedding::let_encoder_go;
pub use entry::Entry;
pub use error::{IndexError, RegistryError};
pub use feedback::{Learned, RelevanceFeedback};
pub use generation::Generation;
pub use history::HistoryEntry;
pub use known_names::{KnownNames, ToolArguments};
pub use limits::EMBEDDED_TOOLS_MAX;
pub use loaded_tools::{BUILT_IN_CATEGORY, BuiltIn, KnownServer};
pub use names::FindError;
pub use pin_book::PinTrouble;
pub use pins::{HeldBy, Pin, SharedPins, Subject};
pub use plan::{Plan, Planned, plan};
pub use registry::{Options, Registry};
pub use review::{DecideError, Review, Reviews, ShownDefinition, digest_of_definitions};
pub use search::{
    Evidence, Hit, MatchKind, Query, QueryText, SearchResult, count_categories, find_lesson,
};
pub use server_rules::{Overlay, Rules, ServerRules};
pub use shared_pins::{OwnPins, adopt_pins};
pub use snapshot::{News, Snapshot, SurveyFailure};
pub use tool_lock::{LockDifference, LockError, LockOutcome, ToolLock, lock, verify};
pub use usage::{ToolUsage, Usage};
pub use view::View;
