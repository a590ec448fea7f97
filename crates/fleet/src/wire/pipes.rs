//! The pipes of a child as rmcp's transport.

use std::{
    future::ready,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use jsonrpc::{Message, Outbox, SendError, frame};
use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ClientRequest, ServerJsonRpcMessage},
    service::RxJsonRpcMessage,
    transport::Transport,
};
use tokio::sync::mpsc;
use tracing::debug;

use crate::{
    asking::Asking, channel::MessageSink, limits::RMCP_MESSAGES_MAX, pending::with_plain_id,
};

/// The transport of a child for rmcp. It writes to the outbox of the call channel, and reads the
/// messages that the channel does not handle.
pub(crate) struct PipeTransport {
    outbox: Arc<Outbox>,
    inbox: mpsc::Receiver<RxJsonRpcMessage<RoleClient>>,
    /// Set when `initialize` is sent.
    pub(super) had_handshake: Arc<AtomicBool>,
}

impl PipeTransport {
    pub(crate) fn new(outbox: Arc<Outbox>, asking: &Arc<Asking>) -> (Self, Feed) {
        let (sender, inbox) = mpsc::channel(RMCP_MESSAGES_MAX);
        let feed = Feed {
            outbox: Arc::clone(&outbox),
            asking: Arc::clone(asking),
            sender,
        };
        let transport = Self {
            outbox,
            inbox,
            had_handshake: Arc::default(),
        };
        (transport, feed)
    }
}

impl Transport<RoleClient> for PipeTransport {
    type Error = SendError;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), SendError>> + Send + 'static {
        let outbox = Arc::clone(&self.outbox);
        if let ClientJsonRpcMessage::Request(request) = &message
            && let ClientRequest::InitializeRequest(_) = request.request
        {
            self.had_handshake.store(true, Ordering::Relaxed);
        }
        async move {
            let mut line = serde_json::to_vec(&message).map_err(|_| SendError::Closed)?;
            line.push(b'\n');
            outbox.send(&[Bytes::from(line)]).await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.inbox.recv().await
    }

    /// Does nothing: the keeper closes the pipes when it stops the child.
    fn close(&mut self) -> impl Future<Output = Result<(), SendError>> + Send {
        ready(Ok(()))
    }
}

/// Feeds rmcp with the messages that the call channel does not handle. Never waits: past
/// [`RMCP_MESSAGES_MAX`] a notification is dropped and a request is refused.
pub(crate) struct Feed {
    outbox: Arc<Outbox>,
    asking: Arc<Asking>,
    sender: mpsc::Sender<RxJsonRpcMessage<RoleClient>>,
}

impl MessageSink for Feed {
    fn take(&mut self, line: &Bytes, message: &Message<'_>) {
        let plain = with_plain_id(line, message);
        let taken = match serde_json::from_slice::<ServerJsonRpcMessage>(&plain) {
            Ok(typed) => self.sender.try_send(typed).is_ok(),
            Err(error) => {
                debug!(%error, "a message of the server is malformed");
                false
            }
        };
        // When the queue is full, rmcp misses a changed list, which must still be noticed.
        let says_changed = |method: &str| method.ends_with("/list_changed");
        if !taken && message.method.as_deref().is_some_and(says_changed) {
            self.asking.note_changed_list();
        }
        if !taken && let (Some(id), Some(_)) = (message.id, &message.method) {
            let refusal = frame::error(id.get(), frame::METHOD_NOT_FOUND, "not supported");
            self.outbox.offer(&[refusal]);
        }
    }
}
