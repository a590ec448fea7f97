//! An MCP client on plain lines of JSON-RPC that keeps received messages unchanged.

mod reply;

use std::{
    collections::HashMap,
    process::{ExitStatus, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
    sync::{Mutex as AsyncMutex, mpsc, oneshot, watch},
    time::timeout,
};

pub use reply::Reply;

use crate::fake::{META_CAPABILITIES, META_VERSION, MODERN_VERSION};

/// Longer than any operation takes, even on a busy machine.
pub const DEADLINE: Duration = Duration::from_mins(1);

/// The time within which the proxy exits when it is asked to, whatever its servers do. It allows itself
/// two seconds; a busy machine gets ten times as much, which is less than any wait for an answer.
pub const ENDS_WITHIN: Duration = Duration::from_secs(20);

/// The maximum number of `input_required` rounds in one call; a server that never stops asking
/// fails the test.
pub const ROUNDS_MAX: usize = 100;
/// The maximum number of notifications and requests buffered for the test; later ones are dropped.
const HEARD_MAX: usize = 100_000;
/// The time for which the output of an exited server may stay open before we stop reading.
const OUTPUT_LEFT_OPEN: Duration = Duration::from_secs(2);

/// A server's process and our end of the connection. Clones share one connection.
#[derive(Debug, Clone)]
pub struct Client(Arc<Talk>);

#[derive(Debug)]
struct Talk {
    pid: u32,
    child: AsyncMutex<Child>,
    stdin: AsyncMutex<Option<ChildStdin>>,
    next_id: AtomicU64,
    modern: AtomicBool,
    /// The number of the server's outputs that are still open.
    readers: watch::Sender<u8>,
    heard: AsyncMutex<mpsc::Receiver<Value>>,
    state: Mutex<ClientState>,
}

#[derive(Debug, Default)]
struct ClientState {
    waiting: HashMap<u64, oneshot::Sender<Reply>>,
    /// Responses that match no request: their id is null, or not an id of a request of ours.
    strays: Vec<Value>,
    /// Our answers to the server's requests, by method.
    answers: HashMap<String, Value>,
    /// Lines that are not JSON-RPC messages; a correct server writes none.
    garbage: Vec<String>,
    stderr: String,
}

impl Client {
    /// Starts a server and reads its output; sends nothing yet.
    pub fn start(mut command: Command) -> Self {
        let shown = format!("{:?}", command.as_std());
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {shown}: {error}"));
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (sender, heard) = mpsc::channel(HEARD_MAX);
        let talk = Arc::new(Talk {
            pid: child.id().expect("the process was not waited for yet"),
            stdin: AsyncMutex::new(child.stdin.take()),
            child: AsyncMutex::new(child),
            next_id: AtomicU64::new(1),
            modern: AtomicBool::new(false),
            readers: watch::Sender::new(2),
            heard: AsyncMutex::new(heard),
            state: Mutex::default(),
        });
        tokio::spawn(Arc::clone(&talk).read(stdout.expect("stdout is piped"), sender));
        tokio::spawn(Arc::clone(&talk).keep_stderr(stderr.expect("stderr is piped")));
        Self(talk)
    }

    /// Performs the handshake of the legacy era with the given version.
    pub async fn initialize(&self, version: &str) -> Value {
        self.initialize_with(version, json!({})).await
    }

    /// Initializes the session with this revision and these capabilities.
    pub async fn initialize_with(&self, version: &str, capabilities: Value) -> Value {
        let params = json!({
            "protocolVersion": version,
            "capabilities": capabilities,
            "clientInfo": { "name": "journeys", "version": "1.0.0" },
        });
        let result = self.request("initialize", params).await.into_result();
        self.notify("notifications/initialized", json!({})).await;
        result
    }

    /// Begins the modern era: from here on every request carries its own `_meta`.
    pub async fn discover(&self) -> Value {
        self.0.modern.store(true, Ordering::SeqCst);
        self.request("server/discover", json!({}))
            .await
            .into_result()
    }

    /// Sends a request and waits for its answer.
    pub async fn request(&self, method: &str, params: Value) -> Reply {
        let (id, reply) = self.begin(method, params).await;
        self.within(&format!("an answer to {method} ({id})"), reply)
            .await
    }

    /// Sends a request without waiting for its response; returns the id, which can be cancelled.
    pub async fn begin(
        &self,
        method: &str,
        mut params: Value,
    ) -> (u64, impl Future<Output = Reply>) {
        if self.0.modern.load(Ordering::SeqCst) {
            params["_meta"][META_VERSION] = json!(MODERN_VERSION);
            if params["_meta"][META_CAPABILITIES].is_null() {
                params["_meta"][META_CAPABILITIES] = json!({});
            }
        }
        let id = self.0.next_id.fetch_add(1, Ordering::SeqCst);
        let (sender, receiver) = oneshot::channel();
        self.state().waiting.insert(id, sender);
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send_line(&request.to_string()).await;
        let client = self.clone();
        let reply = async move {
            receiver.await.unwrap_or_else(|_| {
                panic!(
                    "the server ended before it answered {id}; stderr:\n{}",
                    client.stderr()
                )
            })
        };
        (id, reply)
    }

    /// Sends a notification.
    pub async fn notify(&self, method: &str, params: Value) {
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.send_line(&message.to_string()).await;
    }

    /// Cancels a request.
    pub async fn cancel(&self, id: u64) {
        self.notify(
            "notifications/cancelled",
            json!({ "requestId": id, "reason": "enough" }),
        )
        .await;
    }

    /// Sends one line unchanged, even if it is not a message.
    pub async fn send_line(&self, line: &str) {
        let mut stdin = self.0.stdin.lock().await;
        let stdin = stdin.as_mut().expect("the client is not closed");
        let line = format!("{line}\n");
        let sent = stdin.write_all(line.as_bytes());
        // If the server has exited, its missing responses fail the test.
        drop(
            timeout(DEADLINE, sent)
                .await
                .expect("the server reads its input"),
        );
    }

    /// Answers requests of the server with this method with this result from now on; requests
    /// without a result are refused with -32601.
    pub fn answers(&self, method: &str, result: Value) {
        self.state().answers.insert(method.to_owned(), result);
    }

    /// Holds back requests of the server with this method until the test calls [`Self::answer`].
    pub fn holds_back(&self, method: &str) {
        self.answers(method, Value::Null);
    }

    /// Answers a request of the server.
    pub async fn answer(&self, request: &Value, result: Value) {
        let answer = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
        self.send_line(&answer.to_string()).await;
    }

    /// Returns all pages of `tools/list`.
    pub async fn tools_list(&self) -> Vec<Value> {
        let (mut tools, mut params) = (Vec::new(), json!({}));
        loop {
            let mut page = self.request("tools/list", params).await.into_result();
            if let Value::Array(more) = page["tools"].take() {
                tools.extend(more);
            }
            match page["nextCursor"].take() {
                Value::Null => return tools,
                cursor => params = json!({ "cursor": cursor }),
            }
        }
    }

    /// Calls one of the three tools.
    pub async fn call(&self, tool: &str, arguments: Value) -> Reply {
        self.request(
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        )
        .await
    }

    /// Calls `search_tools`.
    pub async fn search(&self, query: &str) -> Reply {
        self.call("search_tools", json!({ "query": query })).await
    }

    /// Searches until the answer contains the expected text.
    pub async fn until_search_finds(&self, query: &str, wanted: &str) -> String {
        let mut looks = tokio::time::interval(Duration::from_millis(20));
        let found = async {
            loop {
                looks.tick().await;
                let found = self.search(query).await.good();
                if found.contains(wanted) {
                    return found;
                }
            }
        };
        self.within(wanted, found).await
    }

    /// Calls `describe_tool`.
    pub async fn describe(&self, tool: &str) -> Reply {
        self.call("describe_tool", json!({ "name": tool })).await
    }

    /// Calls a tool through `execute_dynamic_tool`.
    pub async fn execute(&self, tool: &str, input: Value) -> Reply {
        let arguments = json!({ "tool_name": tool, "tool_input": input });
        self.call("execute_dynamic_tool", arguments).await
    }

    /// Returns the next notification or request with this method; discards the others.
    pub async fn next(&self, method: &str) -> Value {
        let mut heard = self.0.heard.lock().await;
        let next = async {
            loop {
                let message = heard.recv().await.expect("the server ended");
                if message["method"] == method {
                    return message;
                }
            }
        };
        self.within(method, next).await
    }

    /// Returns the buffered notifications and requests that the test has not read.
    pub async fn heard(&self) -> Vec<Value> {
        let mut heard = self.0.heard.lock().await;
        std::iter::from_fn(|| heard.try_recv().ok()).collect()
    }

    /// Waits for an event; a timeout fails the test and names the event.
    pub async fn within<T>(&self, what: &str, future: impl Future<Output = T>) -> T {
        let waited = timeout(DEADLINE, future).await;
        waited.unwrap_or_else(|_| {
            panic!(
                "no {what} within {} s; stderr:\n{}",
                DEADLINE.as_secs(),
                self.stderr()
            )
        })
    }

    /// Returns the id of the proxy's process.
    pub fn pid(&self) -> u32 {
        self.0.pid
    }

    /// Returns the text that the server has written to standard error so far.
    pub fn stderr(&self) -> String {
        self.state().stderr.clone()
    }

    /// Returns lines of standard output that are not messages.
    pub fn garbage(&self) -> Vec<String> {
        self.state().garbage.clone()
    }

    /// Returns the next response that belongs to no request of ours.
    pub async fn next_stray(&self) -> Value {
        let mut looks = tokio::time::interval(Duration::from_millis(5));
        let stray = async {
            loop {
                looks.tick().await;
                let mut state = self.state();
                if !state.strays.is_empty() {
                    return state.strays.remove(0);
                }
            }
        };
        self.within("stray answer", stray).await
    }

    /// Returns the unmatched responses that no call of [`Self::next_stray`] has taken.
    pub fn strays(&self) -> Vec<Value> {
        self.state().strays.clone()
    }

    /// Closes the server's input and waits for the server to exit.
    pub async fn close(&self) -> ExitStatus {
        self.close_input().await;
        self.ended().await
    }

    /// Closes the proxy's input.
    pub async fn close_input(&self) {
        self.0.stdin.lock().await.take();
    }

    /// Waits for the server to exit by itself. All of its output has then been read, unless one of
    /// its children holds the output open.
    pub async fn ended(&self) -> ExitStatus {
        let mut child = self.0.child.lock().await;
        let status = self.within("end of the server", child.wait()).await;
        let mut readers = self.0.readers.subscribe();
        let read_all = readers.wait_for(|reading| *reading == 0);
        drop(timeout(OUTPUT_LEFT_OPEN, read_all).await);
        status.expect("the process is our child")
    }

    /// Sends SIGKILL, as a client that crashes or a system short of memory does.
    pub async fn kill(&self) {
        let mut child = self.0.child.lock().await;
        child.kill().await.expect("the process is our child");
    }

    fn state(&self) -> MutexGuard<'_, ClientState> {
        self.0.state()
    }
}

impl Talk {
    fn state(&self) -> MutexGuard<'_, ClientState> {
        self.state.lock()
    }

    async fn read(self: Arc<Self>, stdout: ChildStdout, heard: mpsc::Sender<Value>) {
        let mut lines = BufReader::new(stdout).split(b'\n');
        while let Ok(Some(line)) = lines.next_segment().await {
            let line = String::from_utf8_lossy(&line).into_owned();
            match serde_json::from_str::<Value>(&line) {
                Ok(message) if message["jsonrpc"] == "2.0" => {
                    self.hear(line, message, &heard).await;
                }
                _ => self.state().garbage.push(line),
            }
        }
        // Pending callers are notified by the loss of their sender.
        self.state().waiting.clear();
        self.readers.send_modify(|reading| *reading -= 1);
    }

    async fn hear(&self, line: String, message: Value, heard: &mpsc::Sender<Value>) {
        if message.get("method").is_none() {
            let id = message["id"].as_u64();
            let waiting = id.and_then(|id| self.state().waiting.remove(&id));
            match waiting {
                Some(sender) => drop(sender.send(Reply::new(line, message))),
                None => self.state().strays.push(message),
            }
            return;
        }
        if message.get("id").is_some() {
            self.answer_by_itself(&message).await;
        }
        // A test that floods itself loses messages that it does not read.
        drop(heard.try_send(message));
    }

    async fn answer_by_itself(&self, request: &Value) {
        let method = request["method"].as_str().unwrap_or_default();
        let mut answer = json!({ "jsonrpc": "2.0", "id": request["id"] });
        match self.state().answers.get(method) {
            Some(Value::Null) => return,
            Some(result) => answer["result"] = result.clone(),
            None => answer["error"] = json!({ "code": -32601, "message": "not here" }),
        }
        if let Some(stdin) = self.stdin.lock().await.as_mut() {
            drop(stdin.write_all(format!("{answer}\n").as_bytes()).await);
        }
    }

    async fn keep_stderr(self: Arc<Self>, mut stderr: ChildStderr) {
        let mut bytes = [0; 8192];
        while let Ok(count @ 1..) = stderr.read(&mut bytes).await {
            self.state()
                .stderr
                .push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        self.readers.send_modify(|reading| *reading -= 1);
    }
}
