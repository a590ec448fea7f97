//! Results of tools: cut to a client's budget, kept whole on disk if they are too long, and read in
//! parts.
//!
//! Three modules, each of which uses only those before it: `store` keeps and opens results, `fit`
//! cuts and keeps them, `read` answers the built-in tool `read_result`. This crate knows no server,
//! no session and no clock but the system's; its answers are JSON text.

#![warn(missing_docs)]

mod fit;
mod read;
mod settings;
mod store;

pub use fit::{
    BUDGET_MIN, Budget, Fitted, Origin, PartOfWhole, ResultMeasure, fit, imitation_notice,
    is_error, measure, text_block, tokens,
};
pub use read::{
    LIMIT_DEFAULT, Output, ReadError, ReadOutcome, ReadRequest, ReadTexts, Terms, Unit, answer,
    answer_query, read,
};
pub use settings::ResultSettings;
pub use store::{Fetching, Handle, HandleError, KeptResult, ResultStore, SharedResults};
