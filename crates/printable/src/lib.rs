//! Text made fit to be read: what strangers wrote, on one line or on a terminal; numbers.
//!
//! Pure, and below every other room.

mod foreign;
mod number;

pub use foreign::{for_terminal, is_hidden, one_line, one_line_of, prose, seen_json};
pub use number::grouped;
