//! The calls in progress of one client.

use std::sync::{Arc, OnceLock, atomic::Ordering::Relaxed};

use bytes::Bytes;
use files::clock::now_ms;
use fleet::{LogSink, ProgressSink, list_client_roots};
use jsonrpc::mcp::{MISSING_CAPABILITY, Revision};
use jsonrpc::{Fields, Json, Message, frame};
use serde_json::value::RawValue;
use telemetry::Event;
use tokio::sync::mpsc::Receiver;
use tokio_util::sync::CancellationToken;
use tool::{ClientId, ServerName};

use super::{
    changes::{self, Filter, Listening},
    memory::SessionMemory,
    meta::{Meta, read_client_info, read_revision},
    refuse::{refuse, respond},
    request::{ClientRequest, Continuation, Wants},
    request_tasks::RequestTasks,
    rounds::{RoundRequest, goes_in_rounds, refuse_unknown},
    subscriptions::Subscriptions,
};
use crate::{
    authorize::permissions::Arrival,
    call_context::CallContext,
    caller::Caller,
    client_tasks::TakenCall,
    clients::{ClientInfo, ConnectedClient},
    definitions::{DESCRIBE, EXECUTE, SEARCH},
    elicitation::parked_calls::{RoundQuestions, round_questions},
    elicitation::{CallAsker, SessionQuestions},
    error::Audience,
    forward::{Announced, ForwardError, UriLedger, text},
    gateway::Gateway,
    json_text::replace_member,
    log_level::LogLevel,
    out::Out,
    policy::ClientPolicy,
    reply::ToolReply,
    settings::Settings,
};

/// The estimated cost of our own definitions for a model, in tokens.
const OUR_TOKENS: u64 = crate::definitions::TOOLS.len() as u64 / 4;

const NO_TASKS: &str = "Missing required client capability";
const NEEDS_TASKS: &str =
    r#"{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;

/// The calls of one client, and the state that they share.
pub(super) struct Calls {
    pub(super) gateway: Arc<Gateway>,
    pub(super) client: Arc<ConnectedClient>,
    /// The level of a legacy session; a modern request sets its own.
    pub(super) level: LogLevel,
    /// The revision of a legacy session, once its `initialize` was received.
    revision: OnceLock<Revision>,
    pub(super) questions: Arc<SessionQuestions>,
    memory: SessionMemory,
    /// The destination of messages that belong to no request.
    pub(super) home: Out,
    pub(super) subscriptions: Subscriptions,
    pub(super) tasks: RequestTasks,
}

impl Calls {
    pub(super) fn new(
        gateway: Arc<Gateway>,
        client: Arc<ConnectedClient>,
        out: Out,
        gone: CancellationToken,
    ) -> Self {
        Self {
            memory: SessionMemory::in_folder(client.connection.cwd.as_deref()),
            questions: SessionQuestions::new(&client, out.clone()),
            home: out,
            subscriptions: Subscriptions::default(),
            gateway,
            client,
            level: LogLevel::unsaid(),
            revision: OnceLock::new(),
            tasks: RequestTasks::new(gone),
        }
    }

    /// Sets the client's name; the first name applies to the whole session.
    pub(super) fn know_client(&self, message: &Message<'_>) {
        self.questions.know_client(message);
        if message.method.as_deref() == Some("initialize")
            && let Some(revision) = read_revision(message)
        {
            self.client.set_revision(revision.clone());
            let _ = self.revision.set(revision);
        }
        if self.client.info().is_some() {
            return;
        }
        let given = self.client.connection.name.as_deref();
        let given = given.map(ClientInfo::named);
        if let Some(info) = given.or_else(|| read_client_info(message)) {
            self.know(info);
        }
    }

    pub(super) fn know(&self, info: ClientInfo) {
        if let Some(name) = self.client.set_info(info) {
            self.memory.searches.set_client(&name);
            self.record_session(&name);
        }
    }

    /// Records the tokens that a client saves: it is not sent the definitions of all servers.
    fn record_session(&self, name: &str) {
        if self.client.connection.is_stateless {
            return;
        }
        let catalog = self.gateway.catalog.registry.catalog();
        let all: u64 = catalog.servers.iter().map(|server| server.tokens).sum();
        self.gateway.recorder.record(Event::Session {
            at_ms: now_ms(),
            client: name.to_lowercase(),
            tokens_saved: all.saturating_sub(OUR_TOKENS),
        });
    }

    /// Records at which call of its session a client used one of the three tools for the first time.
    fn record_first_use(&self, name: &str, turn: u64) {
        let tools = [SEARCH, DESCRIBE, EXECUTE];
        let Some(place) = tools.iter().position(|tool| *tool == name) else {
            return;
        };
        if self.client.connection.is_stateless || self.memory.used[place].swap(true, Relaxed) {
            return;
        }
        let client = self.client.info().map_or("", |info| &*info.name);
        self.gateway.recorder.record(Event::FirstUse {
            at_ms: now_ms(),
            client: client.to_lowercase(),
            tool: tools[place],
            turn,
        });
    }

    /// The rules for this client in the current configuration. A change of the configuration applies
    /// to an open session from its next request on.
    pub(super) fn policy(&self) -> Arc<ClientPolicy> {
        let announced = self.client.info().map(|info| &*info.name);
        let connection = &self.client.connection;
        let make = |settings: &Settings| settings.clients.of_connection(connection, announced);
        self.memory
            .policy(&self.gateway.settings(), announced.is_some(), make)
    }

    /// Returns true if the roots of the client select its profiles.
    fn chooses_by_roots(&self) -> bool {
        !self.client.connection.is_stateless && self.gateway.settings().clients.has_folders()
    }

    /// Asks the client for its roots before its first request, and after they changed.
    async fn learn_roots(&self, out: &Out) {
        let connection = &self.client.connection;
        let mut knows = self.memory.knows_roots.lock().await;
        if *knows {
            return;
        }
        let asker = CallAsker::in_session(&self.questions, out);
        let roots = list_client_roots(asker.for_server(&ServerName::built_in())).await;
        connection.roots.store(Arc::new(roots));
        self.memory.forget_policy();
        *knows = true;
    }

    /// Forgets the roots of the client, which have changed.
    pub(super) fn forget_roots(self: &Arc<Self>) {
        let calls = Arc::clone(self);
        tokio::spawn(async move { *calls.memory.knows_roots.lock().await = false });
    }

    /// The servers that this client does not share, since its variables differ from those of others.
    pub(super) fn list_apart(&self) -> Vec<ServerName> {
        if self.client.connection.variables.is_none() {
            return Vec::new();
        }
        let sharing = self.gateway.servers.sharing().into_iter();
        let apart =
            sharing.filter(|it| it.client == self.client.number && !it.differing.is_empty());
        apart.map(|it| it.server).collect()
    }

    /// Answers a request in a task of its own.
    pub(super) async fn start(self: &Arc<Self>, call: ClientRequest, out: &Out) {
        let cancel = match self.tasks.begin_call(call.id.as_str()) {
            Ok(cancel) => cancel,
            Err(why) => {
                refuse(out, call.id.as_str(), frame::INTERNAL_ERROR, &why).await;
                return;
            }
        };
        // In the order of the requests: an answer to a question applies to those that arrived before
        // it.
        let arrival = self.memory.arrive(self.client.connection.is_stateless);
        let (calls, out) = (Arc::clone(self), out.clone());
        // In a box: tokio copies the state of a task several times.
        self.tasks.calls.spawn(async move {
            Box::pin(calls.answer(call, arrival, &out, cancel)).await;
        });
    }

    /// Sends notifications about changes on the request's own stream.
    pub(super) async fn listen(
        self: &Arc<Self>,
        id: Json,
        meta: Meta,
        filter: &Json,
        announced: Announced,
        out: &Out,
    ) {
        let key = id.as_str().to_owned();
        let cancel = match self.tasks.begin_listener(&key) {
            Ok(cancel) => cancel,
            Err(why) => {
                refuse(out, &key, frame::INTERNAL_ERROR, &why).await;
                return;
            }
        };
        let arrival = self.memory.arrive(self.client.connection.is_stateless);
        let (mut context, _) = self.context(meta, arrival, out, &cancel);
        context.cancel = cancel.clone();
        let listening = Listening {
            uris: changes::uris(filter.as_str(), announced),
            context,
            id,
            filter: Filter::read(filter.as_str(), announced),
            out: out.clone(),
            gone: self.tasks.gone.clone(),
            cancel,
        };
        let calls = Arc::clone(self);
        self.tasks.listeners.spawn(async move {
            changes::listen(Arc::clone(&calls.gateway), listening, || calls.policy()).await;
            calls.tasks.remove(&key);
        });
    }

    async fn answer(
        &self,
        call: ClientRequest,
        arrival: Arrival,
        out: &Out,
        cancel: CancellationToken,
    ) {
        let ClientRequest {
            id,
            meta,
            wants,
            continuation,
        } = call;
        if let Some(revision) = &meta.revision
            && self.client.revision().is_none()
        {
            self.client.set_revision(revision.clone());
        }
        let is_stateless = meta.revision.is_some();
        let takes_tasks = is_stateless && meta.takes_tasks();
        if matches!(wants, Wants::Task(..)) && !takes_tasks {
            return self.refuse_task(&id, out).await;
        }
        let _under_way = self.questions.begin_call(out);
        if self.chooses_by_roots() {
            let learning = cancel.run_until_cancelled(self.learn_roots(out));
            learning.await.unwrap_or_default();
        }
        let (mut context, questions) = self.context(meta, arrival, out, &cancel);
        let may_take = takes_tasks && matches!(wants, Wants::Tool { .. });
        let taking = may_take.then(|| TakenCall::begin(&mut context));
        if let Wants::Tool { name, .. } = &wants {
            let turn = self.client.count_turn();
            self.record_first_use(name, turn);
        }
        // Held until the response is sent.
        let _turn = self.tasks.take_turn(&cancel).await;
        let answering = async {
            // No further responses are kept for a client that does not read.
            out.room().await;
            if let Some(questions) = questions.filter(|_| goes_in_rounds(&wants)) {
                let request = self.round_request(wants, continuation, taking);
                let answering = request.answer(&id, &self.gateway, context, questions);
                return (Box::pin(answering).await, None);
            }
            if let Wants::Tool { name, arguments } = wants {
                let called = self.gateway.call_tool(&name, arguments.as_deref(), context);
                return match called.await {
                    Some(reply) => self.answer_with_reply(&id, reply, is_stateless),
                    None => (vec![refuse_unknown(id.as_str(), &name)], None),
                };
            }
            let answer = Box::pin(self.answer_with(wants, context, is_stateless)).await;
            (respond(id.as_str(), answer, is_stateless), None)
        };
        // `run_until_cancelled` would have room for the future twice.
        let answer = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            answer = answering => Some(answer),
        };
        self.tasks.remove(id.as_str());
        if cancel.is_cancelled() {
            return self.end_unanswered(out);
        }
        if let Some((line, reply)) = answer {
            let _ = out.answer(line).await;
            drop(reply);
        }
    }

    /// Sends nothing to a client that cancelled its call, or is gone. Over HTTP a call that our own shutdown
    /// ends is answered all the same: its client waits.
    fn end_unanswered(&self, out: &Out) {
        if self.tasks.gone.is_cancelled() {
            out.give_up();
        } else {
            out.withdraw();
        }
    }

    /// Refuses a request for a task to a client that did not declare that it takes tasks.
    async fn refuse_task(&self, id: &Json, out: &Out) {
        let line = frame::error_with(id.as_str(), MISSING_CAPABILITY, NO_TASKS, Some(NEEDS_TASKS));
        self.tasks.remove(id.as_str());
        let _ = out.answer(vec![line]).await;
    }

    /// The line of the response to a call of a tool, and the reply that it is of: its record is written after
    /// the line.
    fn answer_with_reply(
        &self,
        id: &Json,
        reply: ToolReply,
        is_stateless: bool,
    ) -> (Vec<Bytes>, Option<ToolReply>) {
        let reply = match self.revision.get() {
            Some(revision) if !is_stateless => reply.for_revision(revision),
            _ => reply,
        };
        (reply.line(id.as_str(), is_stateless), Some(reply))
    }

    /// The result of any other request, in pieces of bytes.
    async fn answer_with(
        &self,
        wants: Wants,
        context: CallContext,
        is_stateless: bool,
    ) -> Result<Vec<Bytes>, ForwardError> {
        match wants {
            Wants::Subscribe(params) => {
                let uri = text(&params, "uri")?;
                let subscriptions = &self.subscriptions;
                let beginning = subscriptions.begin(&uri, &self.gateway, &context, &self.home);
                beginning.await?;
                Ok(vec![Bytes::from_static(b"{}")])
            }
            Wants::Unsubscribe(params) => {
                self.subscriptions.end(&text(&params, "uri")?);
                Ok(vec![Bytes::from_static(b"{}")])
            }
            Wants::Task(method, params, responses) => {
                let asked = (method, &params, responses.as_ref().map(Json::as_str));
                let answer = self.gateway.client_tasks.answer(asked, &context).await?;
                Ok(vec![answer.bytes()])
            }
            Wants::Other(method, params) => {
                let forwarder = &self.gateway.forwarder;
                let forwarding = forwarder.forward(method, &params, &context, is_stateless);
                forwarding.await
            }
            Wants::Listen(_) | Wants::Tool { .. } => {
                let why = "a call of a tool and `listen` are answered elsewhere";
                Err(ForwardError::internal(why))
            }
        }
    }

    fn round_request(
        &self,
        wants: Wants,
        continuation: Continuation,
        taking: Option<TakenCall>,
    ) -> RoundRequest {
        // A request over HTTP that stands alone is gone as soon as it is answered.
        let gone = if self.client.connection.is_stateless {
            CancellationToken::new()
        } else {
            self.tasks.gone.clone()
        };
        RoundRequest {
            wants,
            continuation,
            taking,
            client: self.client_id().name,
            gone,
        }
    }

    /// Returns the context of a request, and the questions that become its response if its client
    /// accepts no requests from us.
    fn context(
        &self,
        meta: Meta,
        arrival: Arrival,
        out: &Out,
        cancel: &CancellationToken,
    ) -> (CallContext, Option<Receiver<RoundQuestions>>) {
        let progress = meta.progress_token;
        let announced = meta.capabilities.filter(|_| meta.revision.is_some());
        let (asks, questions) = match announced {
            Some(announced) => {
                let (sender, questions) = round_questions();
                let asks = CallAsker::of_request(&self.questions, announced, sender);
                (asks, Some(questions))
            }
            None => (CallAsker::in_session(&self.questions, out), None),
        };
        // A call that continues with its client's next request is cancelled by dropping it.
        let of_request = questions.is_none().then(|| cancel.clone());
        let context = CallContext {
            audience: Audience::Model,
            asks: Some(asks),
            policy: self.policy(),
            caller: self.caller(),
            client: Some(self.client_id()),
            counter: Some(self.client.counter()),
            admitted_as: self.client.connection.caller.clone(),
            transport: self.client.connection.transport,
            is_here: self.client.connection.is_here,
            meta: meta.passed,
            progress: progress.map(|token| forward_progress(out.clone(), token, cancel.clone())),
            log: self.log(meta.log_level, meta.revision.as_ref(), out, cancel.clone()),
            cancel: of_request.unwrap_or_default(),
            searches: Some(Arc::clone(&self.memory.searches)),
            arrival: Some(Arc::new(arrival)),
            sent_instructions: (!self.client.connection.is_stateless)
                .then(|| Arc::clone(&self.memory.instructions)),
            uris: Some(self.uris()),
            script: None,
            call: None,
            task_note: None,
            trace: None,
        };
        (context, questions)
    }

    /// The ledger of URIs; for a client whose requests stand alone it is kept outside of the
    /// session.
    fn uris(&self) -> Arc<UriLedger> {
        let ledger = self.memory.uris.get_or_init(|| {
            if self.client.connection.is_stateless {
                self.gateway.ledgers.of(&self.client_id().name)
            } else {
                Arc::default()
            }
        });
        Arc::clone(ledger)
    }

    /// The owner of scripts: a token if there is one, since a name is only announced, and may be
    /// anybody's.
    fn caller(&self) -> Caller {
        match &self.client.connection.token {
            Some(token) => Caller::Token(Arc::clone(token)),
            None => Caller::Client(self.client.name()),
        }
    }

    /// The identity of the client for servers and kept results. A name may be anybody's, a token is
    /// not; a request over HTTP that stands alone has no servers of its own, which would live as
    /// long as it does.
    fn client_id(&self) -> ClientId {
        let name = self.client.name();
        let connection = &self.client.connection;
        ClientId {
            connection: (!connection.is_stateless).then_some(self.client.number),
            folder: connection.cwd.clone(),
            name: match &connection.token {
                Some(token) => format!("{token}\n{name}").into(),
                None => name,
            },
            caller: connection.http_caller.load_full(),
        }
    }

    /// Forwards log messages of the called server. A modern client receives them only if its request
    /// sets a level.
    fn log(
        &self,
        asked: Option<LogLevel>,
        revision: Option<&Revision>,
        out: &Out,
        cancel: CancellationToken,
    ) -> Option<LogSink> {
        let level = asked.or_else(|| revision.is_none().then(|| self.level.clone()))?;
        let (out, wanted) = (out.clone(), level.name());
        let send = move |params: &RawValue| {
            if !cancel.is_cancelled() && level.wants(params) {
                let method = "notifications/message";
                out.offer(vec![frame::notification(method, params.get())]);
            }
        };
        Some(LogSink {
            session: self.client.number,
            level: wanted,
            send: Arc::new(send),
        })
    }
}

/// Forwards progress under the client's own token; none after a cancellation. Progress that the
/// client does not read in time is dropped.
fn forward_progress(out: Out, token: Json, cancel: CancellationToken) -> ProgressSink {
    Arc::new(move |params: &RawValue| {
        let Some(fields) = Fields::of(params.get()).filter(|_| !cancel.is_cancelled()) else {
            return;
        };
        let params = replace_member(&fields, "progressToken", token.as_str());
        out.offer(vec![frame::notification("notifications/progress", &params)]);
    })
}
