//! The place of an entry, and what an edit of it is told by.

use serde::Deserialize;

use super::lines::Edit;

/// Where the servers of a file are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot<'a> {
    /// The keys that lead there.
    pub(crate) key: &'a [String],
    /// They are a list of tables with a `name`.
    pub(crate) list: bool,
}

/// What an edit made besides the entry, to be taken out with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, Deserialize)]
pub(crate) struct Made {
    /// How many of the tables round the entry.
    pub(crate) tables: usize,
    /// The innermost that was there was `null`.
    pub(crate) was_null: bool,
}

/// An edit that takes one entry out.
pub(super) struct Removal {
    pub(super) edits: Vec<Edit>,
    pub(super) raw: String,
}
