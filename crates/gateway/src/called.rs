//! The outcome of a call, before it is cut to size.

use jsonrpc::Json;
use results::{Budget, Origin, ResultStore, fit};

use crate::reply::Reply;

/// The outcome of a call, before it is cut to size.
pub(super) enum Called {
    Server {
        result: Json,
        budget: Budget,
        origin: Origin,
        /// A line of ours behind the result.
        note: Option<String>,
    },
    /// Of a tool of ours, which keeps to its budget itself.
    Own(Reply),
}

impl Called {
    pub(super) async fn reply(self, store: &ResultStore) -> Reply {
        match self {
            Self::Server {
                result,
                budget,
                origin,
                note,
            } => Reply::from(fit(result, budget, origin, store).await).with_note(note.as_deref()),
            Self::Own(reply) => reply,
        }
    }

    pub(super) fn is_error(&self) -> bool {
        match self {
            Self::Server { result, .. } => results::is_error(result.as_str()),
            Self::Own(reply) => reply.is_error(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Server { result, .. } => result.len(),
            Self::Own(reply) => reply.json().len(),
        }
    }
}
