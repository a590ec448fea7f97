//! A client over stdio: it starts its own `serve` and checks every response.

use std::{
    collections::{HashMap, HashSet},
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::{Mutex as AsyncMutex, oneshot},
    time::timeout,
};

use super::{
    heard::{ANSWER_WITHIN, Heard},
    tally::{Fate, Tally},
};
use crate::fake::LEGACY_VERSION;

#[derive(Debug)]
pub(super) struct Front {
    child: AsyncMutex<Child>,
    stdin: AsyncMutex<Option<ChildStdin>>,
    next_id: AtomicU64,
    state: Mutex<FrontState>,
    tally: Arc<Tally>,
}

#[derive(Debug, Default)]
struct FrontState {
    waiting: HashMap<u64, oneshot::Sender<Value>>,
    /// Abandoned calls; each may still be answered once.
    given_up: HashSet<u64>,
    /// True after we stop the client: missing responses are then expected.
    is_left: bool,
    has_ended: bool,
}

impl Front {
    /// Starts `serve` and performs the handshake.
    pub(super) async fn start(mut command: Command, tally: &Arc<Tally>) -> Arc<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("the proxy beside us can be started");
        let stdout = child.stdout.take().expect("stdio is piped");
        let front = Arc::new(Self {
            stdin: AsyncMutex::new(child.stdin.take()),
            child: AsyncMutex::new(child),
            next_id: AtomicU64::new(1),
            state: Mutex::default(),
            tally: Arc::clone(tally),
        });
        tokio::spawn(Arc::clone(&front).read(stdout));
        tally.begin_call();
        let greeting = json!({
            "protocolVersion": LEGACY_VERSION,
            "capabilities": {},
            "clientInfo": { "name": "soak", "version": "1.0.0" },
        });
        match front.ask("initialize", greeting).await {
            Heard::Answer(answer) if answer.get("result").is_some() => tally.count(Fate::Right),
            Heard::Answer(answer) => tally.note(Fate::Unexplained, &answer.to_string()),
            other => tally.note(other.fate(Fate::UnansweredOverStdio), "initialize"),
        }
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        front.say(&ready).await;
        front
    }

    pub(super) async fn ask(&self, method: &str, params: Value) -> Heard {
        let (id, answer) = self.begin(method, params).await;
        let Some(answer) = answer else {
            return self.without_answer();
        };
        match timeout(ANSWER_WITHIN, answer).await {
            Ok(Ok(answer)) => Heard::Answer(answer),
            Ok(Err(_)) => self.without_answer(),
            Err(_) => {
                self.give_up(id);
                Heard::Unanswered
            }
        }
    }

    /// Sends a request and cancels it immediately.
    pub(super) async fn ask_and_cancel(&self, method: &str, params: Value) -> Heard {
        let (id, _) = self.begin(method, params).await;
        self.give_up(id);
        let cancelled = json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id }
        });
        self.say(&cancelled).await;
        Heard::Left
    }

    /// Sends a request; returns no receiver if the client has ended.
    async fn begin(&self, method: &str, params: Value) -> (u64, Option<oneshot::Receiver<Value>>) {
        let id = self.next_id.fetch_add(1, Ordering::SeqCst);
        let (sender, receiver) = oneshot::channel();
        {
            let mut state = self.state();
            if state.has_ended {
                return (id, None);
            }
            state.waiting.insert(id, sender);
        }
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.say(&request).await;
        (id, Some(receiver))
    }

    fn give_up(&self, id: u64) {
        let mut state = self.state();
        if state.waiting.remove(&id).is_some() {
            state.given_up.insert(id);
        }
    }

    fn without_answer(&self) -> Heard {
        if self.state().is_left {
            Heard::Left
        } else {
            Heard::Unanswered
        }
    }

    /// Sends a message. If the client has ended, its missing responses are noticed.
    async fn say(&self, message: &Value) {
        if let Some(stdin) = self.stdin.lock().await.as_mut() {
            let _ = stdin.write_all(format!("{message}\n").as_bytes()).await;
        }
    }

    pub(super) async fn kill(&self) {
        self.state().is_left = true;
        let _ = self.child.lock().await.kill().await;
    }

    /// Closes the input of the client and waits for the client; returns true if it exited by
    /// itself.
    pub(super) async fn close(&self) -> bool {
        self.state().is_left = true;
        self.stdin.lock().await.take();
        let ended = timeout(ANSWER_WITHIN, self.child.lock().await.wait()).await;
        if ended.is_err() {
            self.kill().await;
        }
        ended.is_ok()
    }

    async fn read(self: Arc<Self>, stdout: ChildStdout) {
        let mut lines = BufReader::new(stdout).split(b'\n');
        while let Ok(Some(line)) = lines.next_segment().await {
            match serde_json::from_slice::<Value>(&line) {
                Ok(message) if message["jsonrpc"] == "2.0" => self.hear(message).await,
                _ => self
                    .tally
                    .note(Fate::Garbage, &String::from_utf8_lossy(&line)),
            }
        }
        let mut state = self.state();
        state.has_ended = true;
        state.waiting.clear();
    }

    async fn hear(&self, message: Value) {
        if let (Some(id), Some(_)) = (message.get("id"), message.get("method")) {
            let error = json!({ "code": -32_601, "message": "not here" });
            let refusal = json!({ "jsonrpc": "2.0", "id": id, "error": error });
            return self.say(&refusal).await;
        }
        if message.get("method").is_some() {
            return;
        }
        let id = message["id"].as_u64().unwrap_or_default();
        let mut state = self.state();
        if let Some(waiting) = state.waiting.remove(&id) {
            // The waiting caller may have been dropped with its client.
            let _ = waiting.send(message);
        } else if !state.given_up.remove(&id) {
            let is_known = (1..self.next_id.load(Ordering::SeqCst)).contains(&id);
            let fate = if is_known {
                Fate::AnsweredTwice
            } else {
                Fate::Garbage
            };
            self.tally.note(fate, &message.to_string());
        }
    }

    fn state(&self) -> MutexGuard<'_, FrontState> {
        self.state.lock()
    }
}
