//! The quality of search: a set of tools and requests ([`set`]), and what a way of searching makes
//! of it ([`score`]). `examples/eval` prints the scoreboard; `tests/floors.rs` keeps the floors.

pub mod score;
pub mod set;
