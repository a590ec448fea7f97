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

/// Longer than anything that works takes, even on a busy machine.
pub const DEADLINE: Duration = Duration::from_mins(1);

/// Rounds of `input_required` in one call; a server that never stops asking fails the test.
pub const ROUNDS_MAX: usize = 100;
/// Notifications and requests kept for the test; those beyond the limit are dropped.
const HEARD_MAX: usize = 100_000;
/// The time for which a dead server's output may stay open before we stop reading.
const OUTPUT_LEFT_OPEN: Duration = Duration::from_secs(2);

/// A server's process and our end of the connection. Clones are the same client.
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
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: HashMap<u64, oneshot::Sender<Reply>>,
    /// Answers that match no request: their id is null, or not one of ours.
    strays: Vec<Value>,
    /// Our answers to the server's requests, by method.
    answers: HashMap<String, Value>,
    /// Lines that were no JSON-RPC message, which no good server writes.
    garbage: Vec<String>,
    stderr: String,
}

impl Client {
    /// Starts a server and listens; nothing is said yet.
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
            pid: child.id().expect("it was not waited for yet"),
            stdin: AsyncMutex::new(child.stdin.take()),
            child: AsyncMutex::new(child),
            next_id: AtomicU64::new(1),
            modern: AtomicBool::new(false),
            readers: watch::Sender::new(2),
            heard: AsyncMutex::new(heard),
            state: Mutex::default(),
        });
        tokio::spawn(Arc::clone(&talk).read(stdout.expect("it is piped"), sender));
        tokio::spawn(Arc::clone(&talk).keep_stderr(stderr.expect("it is piped")));
        Self(talk)
    }

    /// The handshake of the legacy era, at a version of the test's choice.
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

    /// The beginning of the modern era: from here on every request carries
    /// its own `_meta`.
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

    /// Sends a request; the answer comes later, and the id is returned for cancelling.
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

    /// Sends one line as it is, message or not.
    pub async fn send_line(&self, line: &str) {
        let mut stdin = self.0.stdin.lock().await;
        let stdin = stdin.as_mut().expect("a closed client says nothing more");
        let line = format!("{line}\n");
        let sent = stdin.write_all(line.as_bytes());
        // A server that has ended is noticed by its missing answers.
        drop(
            timeout(DEADLINE, sent)
                .await
                .expect("the server reads its input"),
        );
    }

    /// From now on a request of the server's is answered with this result;
    /// those without one are refused with -32601.
    pub fn answers(&self, method: &str, result: Value) {
        self.state().answers.insert(method.to_owned(), result);
    }

    /// From now on a request of the server's with this method waits for [`Self::answer`].
    pub fn holds_back(&self, method: &str) {
        self.answers(method, Value::Null);
    }

    /// Answers a request of the server's.
    pub async fn answer(&self, request: &Value, result: Value) {
        let answer = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
        self.send_line(&answer.to_string()).await;
    }

    /// All pages of `tools/list`.
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

    /// Searches until the answer holds what the test waits for.
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

    /// The next notification or request with this method; others are passed over.
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

    /// Notifications and requests up to now that nobody listened to.
    pub async fn heard(&self) -> Vec<Value> {
        let mut heard = self.0.heard.lock().await;
        std::iter::from_fn(|| heard.try_recv().ok()).collect()
    }

    /// Waits for what must happen, and says what it waited for when it does not.
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

    /// The id of the proxy's process.
    pub fn pid(&self) -> u32 {
        self.0.pid
    }

    /// The text that the server wrote to standard error so far.
    pub fn stderr(&self) -> String {
        self.state().stderr.clone()
    }

    /// Lines on standard output that were no message.
    pub fn garbage(&self) -> Vec<String> {
        self.state().garbage.clone()
    }

    /// The next answer that belongs to no request of ours.
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

    /// Answers to nobody that nobody asked for with [`Self::next_stray`].
    pub fn strays(&self) -> Vec<Value> {
        self.state().strays.clone()
    }

    /// Closes the server's input and waits for it to end.
    pub async fn close(&self) -> ExitStatus {
        self.close_input().await;
        self.ended().await
    }

    /// Ends the proxy's input.
    pub async fn close_input(&self) {
        self.0.stdin.lock().await.take();
    }

    /// Waits for the server to end by itself. Everything it wrote is here then,
    /// unless a child of its own holds its output open.
    pub async fn ended(&self) -> ExitStatus {
        let mut child = self.0.child.lock().await;
        let status = self.within("end of the server", child.wait()).await;
        let mut readers = self.0.readers.subscribe();
        let read_all = readers.wait_for(|reading| *reading == 0);
        drop(timeout(OUTPUT_LEFT_OPEN, read_all).await);
        status.expect("it is our child")
    }

    /// `kill -9`, as a client that crashes or a system short of memory does.
    pub async fn kill(&self) {
        let mut child = self.0.child.lock().await;
        child.kill().await.expect("it is our child");
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state()
    }
}

impl Talk {
    fn state(&self) -> MutexGuard<'_, State> {
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
        // Callers that still wait are notified by the loss of their sender.
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
        // A test that floods itself loses what it does not listen to.
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
