//! rmcp as a server: the handshake of both eras, discovery, the list of our tools, pings and protocol
//! errors. This is the only file of the crate that names rmcp's message types; tool calls do not pass
//! through it (`docs/decisions/0002`).

// Logging is deprecated in the newest revision, but clients of all others request it.
#![expect(deprecated)]

use std::{
    collections::HashMap,
    future::ready,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use jsonrpc::{Message, SendError, without_lone_surrogates};
use parking_lot::Mutex;
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt as _,
    model::{
        CacheScope, ClientJsonRpcMessage, Implementation, JsonObject, ListToolsResult,
        PaginatedRequestParams, PromptsCapability, ResourcesCapability, ServerCapabilities,
        ServerConfig, ServerJsonRpcMessage, SetLevelRequestParams, Tool,
    },
    service::{RequestContext, RxJsonRpcMessage, serve_directly},
    transport::Transport,
};
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
    time::timeout,
};

use crate::{definitions::TOOLS, forward::Announced, log_level::LogLevel, out::Out};

/// The time for which a modern client may cache our list, in milliseconds: a day, since it never changes.
const LIST_TTL_MS: u64 = 24 * 60 * 60 * 1_000;

/// The messages before a client's first call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// `initialize`, or metadata of the modern kind in each request.
    Handshake,
    /// Nothing: the session is a single request over HTTP, or a resumed one.
    None,
}

/// The server that a client sees.
#[derive(Debug, Clone)]
pub(super) struct Face {
    pub(super) instructions: String,
    pub(super) announced: Announced,
    pub(super) level: LogLevel,
}

/// The list of tools, which is the same for every session.
static TOOL_LIST: LazyLock<Vec<Tool>> =
    LazyLock::new(|| serde_json::from_str(TOOLS).expect("the three definitions are tools"));

impl ServerHandler for Face {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_logging()
            .build();
        let Announced {
            prompts,
            resources,
            subscribe,
            completions,
            skills,
        } = self.announced;
        capabilities.prompts = prompts.then(|| {
            let mut prompts = PromptsCapability::default();
            prompts.list_changed = Some(true);
            prompts
        });
        capabilities.resources = resources.then(|| {
            let mut resources = ResourcesCapability::default();
            resources.list_changed = Some(true);
            resources.subscribe = subscribe.then_some(true);
            resources
        });
        let skills = skills.then_some(jsonrpc::mcp::SKILLS_EXTENSION);
        let extensions = skills.into_iter().chain([jsonrpc::mcp::TASKS_EXTENSION]);
        let extensions = extensions.map(|it| (it.to_owned(), JsonObject::default()));
        capabilities.extensions = Some(extensions.collect());
        capabilities.completions = completions.then(Default::default);
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("proxy", env!("CARGO_PKG_VERSION")))
            .with_instructions(self.instructions.clone())
    }

    fn set_level(
        &self,
        request: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<(), ErrorData>> + Send + '_ {
        if let Ok(serde_json::Value::String(level)) = serde_json::to_value(request.level) {
            self.level.set(&level);
        }
        ready(Ok(()))
    }

    fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<ListToolsResult, ErrorData>> + Send + '_ {
        let mut list = ListToolsResult::with_all_items(TOOL_LIST.clone()).with_ttl_ms(LIST_TTL_MS);
        list.cache_scope = Some(CacheScope::Public);
        ready(Ok(list))
    }
}

/// rmcp's end of a session: it receives the messages that the session passes on, and sends to the
/// session's outbox.
pub(super) struct EngineTransport {
    out: Out,
    inbox: mpsc::Receiver<BoxedMessage>,
    /// The number of requests that are not answered yet.
    open: Arc<watch::Sender<usize>>,
    ids: Arc<Mutex<ClientIds>>,
    /// Set when rmcp ends because no message came; `None` if it runs as long as the session.
    rested: Option<Arc<AtomicBool>>,
}

/// The session's end.
#[derive(Debug, Clone)]
pub(super) struct Engine {
    sender: mpsc::Sender<BoxedMessage>,
    ids: Arc<Mutex<ClientIds>>,
    rested: Arc<AtomicBool>,
}

/// The ids of the client's requests that rmcp has not answered, as the client spelled them. rmcp gets
/// numbers of ours: it would print an id in another spelling, and refuse one outside 64 bits.
#[derive(Debug, Default)]
struct ClientIds {
    next: i64,
    by_number: HashMap<i64, Box<str>>,
}

impl ClientIds {
    fn add(&mut self, id: &str) -> i64 {
        self.next += 1;
        self.by_number.insert(self.next, id.into());
        self.next
    }
}

/// The time without a message after which the rmcp of an HTTP session ends: its queues take 35 KB. The next
/// message starts another.
const REST_AFTER: Duration = Duration::from_millis(100);

/// Boxed, because the queue of every session allocates room for 32 messages.
type BoxedMessage = Box<RxJsonRpcMessage<RoleServer>>;

/// The most messages of one client that wait for rmcp. A client that sends more waits, and delays only
/// itself.
const ENGINE_MESSAGES_MAX: usize = 64;

pub(super) enum LineError {
    /// The line is not a message of the protocol; the reason.
    Malformed(String),
    Ended,
}

impl Engine {
    /// Starts rmcp for one session; it ends when the session drops its end, and that of a session over HTTP
    /// also when it has no work.
    pub(super) fn start(face: Face, out: Out, opening: Opening) -> (Self, JoinHandle<()>) {
        let (sender, inbox) = mpsc::channel(ENGINE_MESSAGES_MAX);
        let rested = Arc::new(AtomicBool::new(false));
        let rests = matches!(out, Out::Router(_));
        let ids = Arc::<Mutex<ClientIds>>::default();
        let transport = EngineTransport {
            out,
            inbox,
            open: Arc::new(watch::Sender::new(0)),
            ids: Arc::clone(&ids),
            rested: rests.then(|| Arc::clone(&rested)),
        };
        // Boxed, because the session's handle keeps the memory of an ended task: 9 KB without the box.
        let task = tokio::spawn(Box::pin(async move {
            let begun = match opening {
                Opening::Handshake => face.serve(transport).await,
                Opening::None => Ok(serve_directly(face, transport, None)),
            };
            match begun {
                Ok(service) => {
                    let _ = service.waiting().await;
                }
                Err(error) => tracing::debug!(%error, "the session ended before its handshake"),
            }
        }));
        let engine = Self {
            sender,
            ids,
            rested,
        };
        (engine, task)
    }

    /// Returns true if it ended because it had no work.
    pub(super) fn has_rested(&self) -> bool {
        self.rested.load(Ordering::Acquire)
    }

    pub(super) async fn take(&self, line: &Bytes, message: &Message<'_>) -> Result<(), LineError> {
        let number = message.id.map(|id| self.ids.lock().add(id.get()));
        let numbered = number.map(|number| message.with_id(line, &number.to_string()));
        let passed = self.pass(numbered.as_ref().unwrap_or(line)).await;
        if passed.is_err()
            && let Some(number) = number
        {
            self.ids.lock().by_number.remove(&number);
        }
        passed
    }

    async fn pass(&self, line: &[u8]) -> Result<(), LineError> {
        let text = str::from_utf8(line).map_err(|error| LineError::Malformed(error.to_string()))?;
        // rmcp refuses half a surrogate pair.
        let message = serde_json::from_str(&without_lone_surrogates(text))
            .map_err(|error| LineError::Malformed(error.to_string()))?;
        let sent = self.sender.send(Box::new(message)).await;
        sent.map_err(|_| LineError::Ended)
    }
}

impl EngineTransport {
    /// Receives the next message. Returns `None` when the session has dropped its end, or takes no message
    /// any more because none came. Nothing is lost if this future is dropped.
    async fn next(&mut self) -> Option<BoxedMessage> {
        let Some(rested) = &self.rested else {
            return self.inbox.recv().await;
        };
        loop {
            match timeout(REST_AFTER, self.inbox.recv()).await {
                Ok(message) => return message,
                Err(_) if *self.open.borrow() > 0 => {}
                Err(_) => {
                    rested.store(true, Ordering::Release);
                    // A message that was sent before this is still received.
                    self.inbox.close();
                }
            }
        }
    }
}

impl Transport<RoleServer> for EngineTransport {
    type Error = SendError;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), SendError>> + Send + 'static {
        let (out, open, ids) = (
            self.out.clone(),
            Arc::clone(&self.open),
            Arc::clone(&self.ids),
        );
        async move {
            let mut line = serde_json::to_vec(&message).map_err(|_| SendError::Closed)?;
            line.push(b'\n');
            let line = vec![restore_id(line.into(), &ids)];
            match message {
                ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_) => {
                    let answered = out.answer(line).await;
                    open.send_modify(|open| *open = open.saturating_sub(1));
                    answered
                }
                _ => out.tell(line).await,
            }
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let Some(message) = self.next().await else {
            // rmcp ends at once then, with the answers that it has not sent.
            let mut open = self.open.subscribe();
            let _ = timeout(REST_AFTER, open.wait_for(|open| *open == 0)).await;
            return None;
        };
        if matches!(*message, ClientJsonRpcMessage::Request(_)) {
            self.open.send_modify(|open| *open += 1);
        }
        Some(*message)
    }

    fn close(&mut self) -> impl Future<Output = Result<(), SendError>> + Send {
        ready(Ok(()))
    }
}

/// Writes the client's own id into a response of rmcp.
fn restore_id(line: Bytes, ids: &Mutex<ClientIds>) -> Bytes {
    let message = Message::parse(&line).filter(|message| message.method.is_none());
    let restored = message.and_then(|message| {
        let number = message.id?.get().parse().ok()?;
        let id = ids.lock().by_number.remove(&number)?;
        Some(message.with_id(&line, &id))
    });
    restored.unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;
    use crate::{
        Gateway, Settings,
        clients::Connection,
        out::{ServerEvent, StreamRouter, response_stream},
        session::Session,
    };

    /// Sends a request of a session over HTTP, and returns its response.
    /// A session whose state is in a folder.
    fn session(folder: &std::path::Path, opening: Opening) -> Arc<Session> {
        Session::new(
            Gateway::new(Settings::in_folder(folder.join("state"))).unwrap(),
            Connection::default(),
            Out::Router(Arc::default()),
            opening,
        )
    }

    async fn ask(session: &Arc<Session>, line: &str) -> String {
        let (responses, mut stream) = response_stream();
        let line = Bytes::from(line.to_owned());
        let taken = session.take(&line, &Out::Reply(responses)).await;
        assert!(taken.is_ok());
        match stream.next().await {
            Some(ServerEvent::Answer(parts)) => String::from_utf8(parts.concat()).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_over_http_answers_alike_after_its_rmcp_has_ended() {
        const LIST: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
        const PING: &str = r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#;
        let folder = tempfile::tempdir().unwrap();
        let session = session(folder.path(), Opening::Handshake);
        let begun = ask(
            &session,
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
        );
        assert!(begun.await.contains(r#""protocolVersion":"2025-06-18""#));
        let told = Bytes::from_static(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        assert!(
            session
                .take(&told, &Out::Router(Arc::default()))
                .await
                .is_ok()
        );
        let before = (ask(&session, LIST).await, ask(&session, PING).await);
        for _ in 0..2 {
            sleep(REST_AFTER * 3).await;
            assert_eq!(ask(&session, LIST).await, before.0);
            assert_eq!(ask(&session, PING).await, before.1);
        }
    }

    /// The spellings of ids that encoders write.
    const IDS: [&str; 14] = [
        "1",
        "1.0",
        "0.0",
        "-0",
        "-0.0",
        "1e3",
        "1E2",
        "1.5",
        "-7",
        "9007199254740993",
        "18446744073709551617123",
        "1e400",
        r#""\u0061""#,
        r#""a b""#,
    ];

    #[tokio::test(start_paused = true)]
    async fn every_request_is_answered_with_its_id_as_it_was_spelled() {
        let begin = r#""method":"initialize","params":{"protocolVersion":"2025-06-18",
            "capabilities":{},"clientInfo":{"name":"c","version":"1"}}"#;
        let begin = begin.replace('\n', " ");
        let call =
            r#""method":"tools/call","params":{"name":"search_tools","arguments":{"query":"x"}}"#;
        let level = r#""method":"logging/setLevel","params":{"level":"info"}"#;
        let folder = tempfile::tempdir().unwrap();
        for id in IDS {
            let settings = Settings::in_folder(folder.path().join("state"));
            let session = Session::new(
                Gateway::new(settings).unwrap(),
                Connection::default(),
                Out::Router(Arc::default()),
                Opening::Handshake,
            );
            for request in [
                &*begin,
                r#""method":"ping""#,
                r#""method":"tools/list""#,
                level,
                call,
                r#""method":"no/such""#,
            ] {
                let line = format!(r#"{{"jsonrpc":"2.0","id":{id},{request}}}"#);
                let answer = timeout(Duration::from_secs(30), ask(&session, &line)).await;
                let answer = answer.unwrap_or_else(|_| panic!("no answer to {line}"));
                let answer = Bytes::from(answer);
                let message = Message::parse(&answer).unwrap();
                assert_eq!(
                    message.id.map(serde_json::value::RawValue::get),
                    Some(id),
                    "{line}"
                );
            }
        }
    }

    #[tokio::test]
    async fn a_request_with_an_id_of_a_wrong_type_is_answered_with_null() {
        let folder = tempfile::tempdir().unwrap();
        let session = session(folder.path(), Opening::None);
        for id in ["[]", "{}", "true", "false", "null", r#"["a"]"#] {
            for method in ["ping", "tools/call", "initialize", "no/such"] {
                let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#);
                let answer = ask(&session, &line).await;
                assert!(
                    answer.starts_with(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"#),
                    "{answer}"
                );
            }
        }
    }

    #[tokio::test]
    async fn half_a_surrogate_pair_leaves_a_request_its_id() {
        let folder = tempfile::tempdir().unwrap();
        let session = session(folder.path(), Opening::None);
        for (request, expected) in [
            (
                r#""method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},
                "clientInfo":{"name":"c\ud83d","version":"1\udc00","\ud800":1}}"#,
                r#""result":"#,
            ),
            (r#""method":"no\ud800""#, r#""error":{"code":-32601,"#),
            (r#""method":"ping","\ud800":1"#, r#""result":"#),
            (
                r#""method":"ping","params":{"_meta":{"\ud800":"\ud800"}}"#,
                r#""result":"#,
            ),
        ] {
            let line = format!(
                r#"{{"jsonrpc":"2.0","id":7,{}}}"#,
                request.replace('\n', "")
            );
            let answer = ask(&session, &line).await;
            let begin = format!(r#"{{"jsonrpc":"2.0","id":7,{expected}"#);
            assert!(answer.starts_with(&begin), "{line}: {answer}");
        }
        let info = r#"{"name":"c\ud83d"}"#.to_owned();
        let client = crate::clients::ClientInfo::read(
            &serde_json::value::RawValue::from_string(info).unwrap(),
        );
        assert_eq!(&*client.unwrap().name, "c\u{fffd}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_engine_ends_when_it_has_no_work() {
        static PING: Bytes = Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
        let router = Arc::new(StreamRouter::default());
        let face = Face {
            instructions: String::new(),
            announced: Announced::default(),
            level: LogLevel::unsaid(),
        };
        let out = Out::Router(Arc::clone(&router));
        let (engine, task) = Engine::start(face, out, Opening::None);
        let (responses, mut stream) = response_stream();
        router.expect("1", &responses);
        let ping = Message::parse(&PING).unwrap();
        assert!(engine.take(&PING, &ping).await.is_ok());
        assert!(matches!(stream.next().await, Some(ServerEvent::Answer(_))));
        assert!(!engine.has_rested());
        task.await.unwrap();
        assert!(engine.has_rested());
        assert!(matches!(
            engine.take(&PING, &ping).await,
            Err(LineError::Ended)
        ));
    }
}
