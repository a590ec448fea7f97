//! A mistake whose place is a byte of the file.

use crate::mistake::Fault;

/// A mistake at a byte of the file.
#[derive(Debug)]
pub(super) struct PlacedFault {
    pub(super) byte: usize,
    pub(super) key: String,
    pub(super) fault: Fault,
    /// True if it says that something is missing, which an unreadable line may explain.
    pub(super) missing: bool,
}
