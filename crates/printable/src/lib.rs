//! Text made fit to be read: what strangers wrote, on one line or on a terminal; numbers;
//! texts shortened.
//!
//! Pure, and below every other room.

#![warn(missing_docs)]

mod foreign;
mod number;
mod short;

pub use foreign::{for_terminal, is_hidden, one_line, one_line_of, prose, seen_json};
pub use number::group_digits;
pub use short::{first_chars, shorten, shorten_middle};
