//! The quality of search: a set of tools and requests ([`set`]), and the score of a search
//! configuration on it ([`score`]). `examples/eval` prints the scoreboard; `tests/floors.rs` checks
//! the floors.

pub mod score;
pub mod set;
