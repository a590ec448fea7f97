//! The bound on a server's lines, by the request that each answers.

use std::sync::Arc;

use jsonrpc::{Cap, answered_id};

use crate::{error::RequestError, limits::LIST_BYTES_MAX, pending::PendingRequests};

/// Returns the bound on a line, by its beginning: that of the response to the request it names, or,
/// if it names none, the largest of all pending responses.
pub(crate) fn cap(pending: &Arc<PendingRequests>) -> Cap {
    let pending = Arc::clone(pending);
    Arc::new(move |head| {
        let by_id = &pending.by_id;
        let named = read_id(head).and_then(|id| Some(by_id.get(&id)?.bytes_max));
        let longest = || by_id.iter().map(|it| it.bytes_max).max();
        named.or_else(longest).unwrap_or(LIST_BYTES_MAX)
    })
}

/// Fails the request that an over-long line answers: its id comes early, or no other is waited
/// for that could not be so long.
pub(super) fn refuse_too_long(pending: &PendingRequests, head: &[u8], bytes: usize) {
    let only = || {
        let mut short = pending.by_id.iter().filter(|it| it.bytes_max < bytes);
        let first = short.next().map(|it| *it.key());
        first.filter(|_| short.next().is_none())
    };
    let id = read_id(head).or_else(only);
    if let Some((_, request)) = id.and_then(|id| pending.by_id.remove(&id)) {
        request.respond(Err(RequestError::Failed(format!(
            "its response was one line of {bytes} bytes, which is over the limit"
        ))));
    }
}

/// Returns the id of our request that a line answers, if the line has it at its beginning.
fn read_id(head: &[u8]) -> Option<u64> {
    answered_id(head)?.trim_matches('"').parse().ok()
}
