//! The pipes of a child as rmcp's transport.

use std::{
    future::ready,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use jsonrpc::{Closed, Message, Outbox, frame};
use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ClientRequest, ServerJsonRpcMessage},
    service::RxJsonRpcMessage,
    transport::Transport,
};
use tokio::sync::mpsc;
use tracing::debug;

use crate::{changes::OnListChanged, channel::MessageSink, limits::RMCP_MESSAGES_MAX};

/// The end of a child's pipes that rmcp has: it writes to the same outbox as the call channel,
/// and reads what that leaves.
pub(crate) struct PipeTransport {
    outbox: Arc<Outbox>,
    inbox: mpsc::Receiver<RxJsonRpcMessage<RoleClient>>,
    had_handshake: Arc<AtomicBool>,
}

impl PipeTransport {
    /// The transport, and what feeds it.
    pub(crate) fn new(outbox: Arc<Outbox>, on_list_changed: OnListChanged) -> (Self, Feed) {
        let (sender, inbox) = mpsc::channel(RMCP_MESSAGES_MAX);
        let feed = Feed {
            outbox: Arc::clone(&outbox),
            on_list_changed,
            sender,
        };
        let transport = Self {
            outbox,
            inbox,
            had_handshake: Arc::default(),
        };
        (transport, feed)
    }

    /// Set when `initialize` was sent.
    pub(crate) fn had_handshake(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.had_handshake)
    }
}

impl Transport<RoleClient> for PipeTransport {
    type Error = Closed;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Closed>> + Send + 'static {
        let outbox = Arc::clone(&self.outbox);
        if let ClientJsonRpcMessage::Request(request) = &message
            && let ClientRequest::InitializeRequest(_) = request.request
        {
            self.had_handshake.store(true, Ordering::Relaxed);
        }
        async move {
            let mut line = serde_json::to_vec(&message).map_err(|_| Closed)?;
            line.push(b'\n');
            outbox.send(&[Bytes::from(line)]).await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.inbox.recv().await
    }

    /// The pipes belong to the keeper, which closes them when it stops the child.
    fn close(&mut self) -> impl Future<Output = Result<(), Closed>> + Send {
        ready(Ok(()))
    }
}

/// Feeds rmcp with what the call channel leaves. Never waits: past [`RMCP_MESSAGES_MAX`] a
/// notification is dropped and a request is refused.
pub(crate) struct Feed {
    outbox: Arc<Outbox>,
    on_list_changed: OnListChanged,
    sender: mpsc::Sender<RxJsonRpcMessage<RoleClient>>,
}

impl MessageSink for Feed {
    fn take(&mut self, line: &Bytes, message: &Message<'_>) {
        let taken = match serde_json::from_slice::<ServerJsonRpcMessage>(line) {
            Ok(typed) => self.sender.try_send(typed).is_ok(),
            Err(error) => {
                debug!(%error, "the server wrote a message we cannot read");
                false
            }
        };
        // Under a flood rmcp hears nothing of a change; we must.
        let says_changed = |method: &str| method.ends_with("/list_changed");
        if !taken && message.method.as_deref().is_some_and(says_changed) {
            (self.on_list_changed)();
        }
        if !taken && let (Some(id), Some(_)) = (message.id, &message.method) {
            let refusal = frame::error(id.get(), frame::METHOD_NOT_FOUND, "not supported");
            self.outbox.offer(&[refusal]);
        }
    }
}
