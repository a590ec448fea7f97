//! The calls of one client that are under way.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use dashmap::DashMap;
use fleet::{LogSink, ProgressSink};
use jsonrpc::{Fields, Json, Message, frame, text_of};
use mcp::Revision;
use serde_json::{Value, value::RawValue};
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tool::{ClientId, ServerName};

use super::{
    meta::{Meta, read_client_info},
    refuse::refuse,
};
use crate::{
    asks::{CallAsker, SessionQuestions},
    call_context::CallContext,
    clients::{ClientInfo, ConnectedClient},
    gateway::Gateway,
    log_level::LogLevel,
    out::Out,
    policy::ClientPolicy,
    recent_searches::RecentSearches,
    reply::Reply,
};

/// Calls of one client under way at one time; a further one is refused.
const CALLS_MAX: usize = 1_024;

/// Of those, how many are made at one time; the others wait. So many answers at most wait in
/// memory for a client that does not read, beside what its outbox holds.
const CALLS_AT_ONCE: usize = 128;

/// The calls of one client, and what holds for them.
pub(super) struct Calls {
    pub(super) gateway: Arc<Gateway>,
    pub(super) client: Arc<ConnectedClient>,
    /// What holds for the client, from the moment that it says its name.
    policy: OnceLock<Arc<ClientPolicy>>,
    /// Of a legacy session; a modern request says its own.
    pub(super) level: LogLevel,
    searches: Arc<RecentSearches>,
    pub(super) questions: Arc<SessionQuestions>,
    pub(super) tasks: TaskTracker,
    /// One permit a call that is made, not merely taken off the line.
    turns: Semaphore,
    /// By the text of their request id.
    running: DashMap<String, CancellationToken>,
    /// Cancelled when the client is gone.
    pub(super) gone: CancellationToken,
}

/// A call of one of our tools, as it came.
pub(super) struct ToolCall {
    id: Json,
    name: String,
    arguments: Option<Box<RawValue>>,
    meta: Meta,
}

impl ToolCall {
    /// Reads a call that is ours to answer: of an open legacy session, or of a modern client that
    /// says all that a request must say. Any other is left to rmcp, which knows how to refuse it.
    pub(super) fn read(line: &Bytes, message: &Message<'_>, is_open: bool) -> Option<Self> {
        let params = Fields::of(message.params?.get())?;
        let name = text_of(params.get("name")?)?.into_owned();
        let meta = params
            .get("_meta")
            .map(|raw| Meta::read(line, raw))
            .unwrap_or_default();
        let is_ours = match &meta.revision {
            Some(revision) => {
                revision.is_known() && revision.is_stateless() && meta.capabilities.is_some()
            }
            None => is_open,
        };
        if !is_ours {
            return None;
        }
        Some(Self {
            id: Json::part_of(line, message.id?),
            name,
            arguments: params.get("arguments").map(ToOwned::to_owned),
            meta,
        })
    }
}

impl Calls {
    pub(super) fn new(
        gateway: Arc<Gateway>,
        client: Arc<ConnectedClient>,
        out: Out,
        gone: CancellationToken,
    ) -> Self {
        let folder = client.connection.cwd.as_deref();
        Self {
            searches: Arc::new(RecentSearches::in_folder(folder)),
            questions: SessionQuestions::new(client.number, out),
            gateway,
            client,
            policy: OnceLock::new(),
            level: LogLevel::unsaid(),
            tasks: TaskTracker::new(),
            turns: Semaphore::new(CALLS_AT_ONCE),
            running: DashMap::new(),
            gone,
        }
    }

    /// The first name that the client says of itself holds for the whole session.
    pub(super) fn know_client(&self, message: &Message<'_>) {
        self.questions.know_client(message);
        if self.policy.get().is_some() {
            return;
        }
        if let Some(info) = read_client_info(message) {
            self.know(info);
        }
    }

    pub(super) fn know(&self, info: ClientInfo) {
        if let Some(name) = self.client.set_info(info) {
            self.searches.set_client(&name);
            let policy = self.gateway.settings().clients.of(Some(&name));
            let _ = self.policy.set(Arc::new(policy));
        }
    }

    /// The rules for this client, whether it has said its name or not.
    pub(super) fn policy(&self) -> Arc<ClientPolicy> {
        let nameless = || Arc::new(self.gateway.settings().clients.of(None));
        self.policy.get().cloned().unwrap_or_else(nameless)
    }

    /// The servers that this client does not share, since its variables differ from those of others.
    pub(super) fn list_apart(&self) -> Vec<ServerName> {
        if self.client.connection.variables.is_none() {
            return Vec::new();
        }
        let sharing = self.gateway.servers.sharing().into_iter();
        let apart =
            sharing.filter(|it| it.client == Some(self.client.number) && !it.differing.is_empty());
        apart.map(|it| it.server).collect()
    }

    /// Makes a call in a task of its own.
    pub(super) async fn start(self: &Arc<Self>, call: ToolCall, out: &Out) {
        if self.tasks.len() >= CALLS_MAX {
            let why = format!("more than {CALLS_MAX} calls under way");
            refuse(out, call.id.as_str(), -32_603, &why).await;
            return;
        }
        let cancel = self.gone.child_token();
        self.running
            .insert(call.id.as_str().to_owned(), cancel.clone());
        let (calls, out) = (Arc::clone(self), out.clone());
        self.tasks
            .spawn(async move { calls.answer(call, &out, cancel).await });
    }

    async fn answer(&self, call: ToolCall, out: &Out, cancel: CancellationToken) {
        let asks = match call.meta.capabilities {
            Some(announced) if call.meta.revision.is_some() => {
                CallAsker::of_request(&self.questions, announced)
            }
            _ => CallAsker::in_session(&self.questions, out),
        };
        let _under_way = self.questions.begin_call(out);
        let context = CallContext {
            policy: self.policy(),
            client: Some(self.client_id()),
            meta: call.meta.passed,
            progress: call
                .meta
                .progress_token
                .map(|token| progress(out.clone(), token, cancel.clone())),
            log: self.log(
                call.meta.log_level,
                call.meta.revision.as_ref(),
                out,
                cancel.clone(),
            ),
            asks: Some(asks),
            cancel: cancel.clone(),
            searches: Some(Arc::clone(&self.searches)),
        };
        self.client.count_call();
        // Held until the answer is on its way.
        let _turn = cancel.run_until_cancelled(self.turns.acquire()).await;
        let answering = async {
            // A client that does not read gets no further answers to keep for it.
            out.room().await;
            let arguments = call.arguments.as_deref();
            self.gateway.call_tool(&call.name, arguments, context).await
        };
        let reply = cancel.run_until_cancelled(answering).await;
        self.running.remove(call.id.as_str());
        // Nothing is said to a client that took its call back, or is gone. Over HTTP a call that
        // our own end cuts short is answered all the same: its client waits.
        if cancel.is_cancelled() {
            if self.gone.is_cancelled() {
                out.give_up();
            } else {
                out.withdraw();
            }
            return;
        }
        match reply {
            Some(Some(reply)) => send(out, &call.id, &reply, call.meta.revision.as_ref()).await,
            Some(None) => {
                let why = format!("Unknown tool: {}", call.name);
                refuse(out, call.id.as_str(), -32_602, &why).await;
            }
            None => {}
        }
    }

    /// The client as servers and kept results know it. A name may be anybody's, a token is not; a
    /// request over HTTP that stands alone has no servers of its own, which would live as long as
    /// it does.
    fn client_id(&self) -> ClientId {
        let name = self.client.info().map_or("", |it| it.name.as_str());
        let connection = &self.client.connection;
        ClientId {
            connection: (!connection.is_stateless).then_some(self.client.number),
            folder: connection.cwd.clone(),
            name: match &connection.token {
                Some(token) => format!("{token}\n{name}").into(),
                None => name.into(),
            },
        }
    }

    /// Forwards log messages of the server that is called. A modern client hears them only where
    /// its request says from which level on.
    fn log(
        &self,
        asked: Option<LogLevel>,
        revision: Option<&Revision>,
        out: &Out,
        cancel: CancellationToken,
    ) -> Option<LogSink> {
        let level = asked.or_else(|| revision.is_none().then(|| self.level.clone()))?;
        let out = out.clone();
        let send = move |params: &RawValue| {
            if !cancel.is_cancelled() && level.wants(params) {
                out.offer(vec![frame::notification(
                    "notifications/message",
                    params.get(),
                )]);
            }
        };
        let session = self.client.number;
        Some(LogSink {
            session,
            send: Arc::new(send),
        })
    }

    /// Cancels a call by the text of its request id, where it is one of these.
    pub(super) fn cancel(&self, id: &str) -> bool {
        let call = self.running.get(id);
        call.inspect(|call| call.cancel()).is_some()
    }
}

async fn send(out: &Out, id: &Json, reply: &Reply, revision: Option<&Revision>) {
    let parts = frame::result(id.as_str(), reply.parts(revision));
    let _ = out.answer(parts).await;
}

/// Forwards progress under the client's own token; none after a cancellation. What the
/// client does not read in time is dropped.
fn progress(out: Out, token: Json, cancel: CancellationToken) -> ProgressSink {
    Arc::new(move |params: &RawValue| {
        let Some(fields) = Fields::of(params.get()).filter(|_| !cancel.is_cancelled()) else {
            return;
        };
        let members = fields.0.iter().map(|(key, value)| {
            let value = if key == "progressToken" {
                token.as_str()
            } else {
                value.get()
            };
            format!("{}:{value}", Value::from(key.as_ref()))
        });
        let members: Vec<String> = members.collect();
        let params = format!("{{{}}}", members.join(","));
        out.offer(vec![frame::notification("notifications/progress", &params)]);
    })
}
