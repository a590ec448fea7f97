//! The texts of the gateway's answers: data to text or JSON, without I/O and without state.

mod branches;
pub(crate) mod describe;
pub(crate) mod error;
pub(crate) mod hit;
mod room;
pub(crate) mod search;
pub(crate) mod search_json;

pub(crate) use room::whole_lines;
