//! Results that are returned whole, cut, kept and read on.

mod blocks;
mod bounded;
mod bounded_readings;
mod expressions;
mod kept_results;
pub(crate) mod long_results;
mod reading_on;
