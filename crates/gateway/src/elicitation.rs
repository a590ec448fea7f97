//! Questions of servers to our client: sent to it, answered once, and cancelled when no caller
//! waits.

mod asker;
mod capabilities;
pub(crate) mod input_rounds;
pub(crate) mod parked_calls;
pub(crate) mod requested_input;
pub(crate) mod server_tasks;
mod session_questions;

pub use self::asker::CallAsker;
pub(crate) use self::capabilities::Capabilities;
pub(crate) use self::{
    asker::ServerAsker,
    session_questions::{SessionQuestions, read_announced},
};
