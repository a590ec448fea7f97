//! The outcome of a call, before it is cut to size.

use jsonrpc::Json;
use results::{Budget, Origin, ResultStore, fit};

use crate::{call_note::CallNote, reply::Reply};

/// The outcome of a call, before it is cut to size.
pub(super) enum Called {
    Server {
        result: Json,
        budget: Budget,
        origin: Origin,
        /// A line of ours after the result.
        note: Option<String>,
        /// The note of the call; it ends when the result is sent.
        taken: Option<Box<CallNote>>,
    },
    /// The reply of a tool of ours, which keeps to its budget itself.
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
                taken,
            } => {
                let fitted = fit(result, budget, origin, store).await;
                let is_cut = fitted.is_cut;
                let reply = Reply::from(fitted).with_note(note.as_deref());
                if let Some(mut taken) = taken {
                    taken.is_sent(reply.json().len(), is_cut);
                }
                reply
            }
            Self::Own(reply) => reply,
        }
    }

    /// Attaches the note of the call.
    pub(super) fn noted(mut self, mut noted: CallNote) -> Self {
        noted.brings(self.bytes(), self.is_error());
        if let Self::Server { taken, .. } = &mut self {
            *taken = Some(Box::new(noted));
        }
        self
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
