//! What servers ask of our client: put to it, answered once, and taken back when nobody waits.

mod asker;
mod capabilities;
mod session_questions;

pub use self::asker::CallAsker;
pub(crate) use self::{
    asker::ServerAsker,
    session_questions::{SessionQuestions, read_announced},
};
