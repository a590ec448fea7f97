//! The outcome of a call, before it is cut to size.

use jsonrpc::Json;
use results::{Budget, Origin, ResultStore, fit};

use crate::{
    app_use::{AppUse, name_whole},
    dispatcher::record::CallNote,
    reply::ToolReply,
};

pub(crate) enum CallOutcome {
    Server {
        result: Json,
        budget: Budget,
        origin: Origin,
        /// The tool as it can be called again.
        tool: String,
        /// A line of ours after the result.
        note: Option<String>,
        app: Option<AppUse>,
        /// The record of the call; it is written when the result is sent.
        record: Option<Box<CallNote>>,
    },
    /// The reply of a tool of ours, which keeps to its budget itself.
    Own(ToolReply),
}

impl CallOutcome {
    /// The reply, cut to size. The record of the call is written.
    pub(crate) async fn reply(self, store: &ResultStore) -> ToolReply {
        self.reply_and_record(store).await.0
    }

    /// The reply, cut to size, and the record of the call, which is written when it is dropped.
    pub(crate) async fn reply_and_record(
        self,
        store: &ResultStore,
    ) -> (ToolReply, Option<Box<CallNote>>) {
        match self {
            Self::Server {
                result,
                budget,
                origin,
                tool,
                note,
                app,
                mut record,
            } => {
                let reply = match app {
                    Some(AppUse::Calls) => {
                        let is_error = results::is_error(&result);
                        ToolReply::of_server(result, is_error)
                    }
                    app => {
                        let shown = app.map(|_| (result.clone(), origin.clone()));
                        let fitted = fit(result, budget, origin, store).await;
                        let mut reply = ToolReply::from(fitted).with_note(note.as_deref());
                        if let Some((whole, origin)) = shown {
                            reply = Box::pin(name_whole(reply, whole, origin, store)).await;
                        }
                        reply
                    }
                };
                if let Some(record) = &mut record {
                    record.set_sent(&reply);
                }
                (reply.of_tool(tool), record)
            }
            Self::Own(reply) => (reply, None),
        }
    }

    pub(crate) fn with_record(mut self, mut note: Box<CallNote>) -> Self {
        note.set_result(self.bytes(), self.is_error());
        match &mut self {
            Self::Server { record, .. } => *record = Some(note),
            Self::Own(reply) => note.set_sent(reply),
        }
        self
    }

    pub(crate) fn is_error(&self) -> bool {
        match self {
            Self::Server { result, .. } => results::is_error(result),
            Self::Own(reply) => reply.is_error(),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Server { result, .. } => result.len(),
            Self::Own(reply) => reply.json().len(),
        }
    }
}
