//! A possible cut.

/// The number of ranks, from 0, the best.
pub(crate) const RANKS: usize = 5;

/// A possible cut, and its rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) at: usize,
    pub(crate) rank: usize,
}
