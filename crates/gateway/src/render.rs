//! The texts of the gateway's answers: data to text or JSON, without I/O and without state.

mod branches;
pub(crate) mod describe;
pub(crate) mod error;
pub(crate) mod hit;
mod room;
pub(crate) mod search;
pub(crate) mod search_json;

use std::fmt::Display;

pub(crate) use room::whole_lines;

/// Writes a list, with `between` between its elements.
pub(crate) fn join(list: impl IntoIterator<Item: Display>, between: &str) -> String {
    let texts: Vec<String> = list.into_iter().map(|it| it.to_string()).collect();
    texts.join(between)
}
