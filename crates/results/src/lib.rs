//! Results of tools, made to fit a client's budget, kept whole on disk where they did not, and read
//! on in parts.
//!
//! Three modules, and nothing of what is done by one is known to the one before it: `store` keeps
//! and opens, `fit` cuts and keeps, `read` answers the built-in tool `read_result`. This room knows
//! no server, no session and no clock but the system's; what it answers is JSON text.

#![warn(missing_docs)]

mod fit;
mod read;
mod settings;
mod store;

pub use fit::{
    BUDGET_MIN, Budget, Fitted, Origin, fit, imitation_notice, is_error, text_block, tokens,
};
pub use read::{
    Found, LIMIT_DEFAULT, Output, ReadError, Reading, Terms, Unit, Wanted, answer, answer_question,
    read,
};
pub use settings::Settings;
pub use store::{Draft, Handle, HandleError, Kept, ResultStore, TextHead};
