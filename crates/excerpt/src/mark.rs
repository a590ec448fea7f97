//! A place to cut.

/// Ranks go from 0, the best place, up to here.
pub(crate) const RANKS: usize = 5;

/// A place to cut, and how good it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) at: usize,
    pub(crate) rank: usize,
}
