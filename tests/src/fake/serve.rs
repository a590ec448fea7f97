//! The main loop of the fake server and the steps of its script.

use std::{
    collections::{HashMap, HashSet},
    ffi::OsString,
    fs,
    io::{self, BufRead as _, Write as _},
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::{Notify, mpsc, oneshot},
    task::JoinSet,
    time::timeout,
};

use super::{
    META_SUBSCRIPTION,
    answers::{self, FakeRequest},
    inquiry, items, payload,
    script::{Era, Script, Step},
};

/// The number of lines read but not yet handled at which reading stops.
const LINES_WAITING_MAX: usize = 1_000;
/// The interval at which a step that waits for a file checks for it.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Runs the script until standard input ends or a step exits. Returns the exit code; the error is
/// for the author of the script.
pub async fn serve(script: Script) -> Result<i32, String> {
    let fake = Arc::new(Fake::new(answers::with_catalog(script)?));
    let mut sigterm = signal(SignalKind::terminate()).map_err(|error| error.to_string())?;
    fake.remark(&json!({ "fake": "started", "pid": std::process::id() }));
    tokio::select! {
        () = Arc::clone(&fake).live() => {}
        () = fake.until_terminated(&mut sigterm) => {}
    }
    Ok(0)
}

/// Reads lines on a thread, because a blocked read must not keep the process alive.
fn read_lines(is_deaf: Arc<AtomicBool>) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel(LINES_WAITING_MAX);
    std::thread::spawn(move || {
        for line in io::stdin().lock().split(b'\n') {
            while is_deaf.load(Ordering::SeqCst) {
                std::thread::park();
            }
            let Ok(line) = line else { return };
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

struct Fake {
    script: Script,
    initialized: AtomicBool,
    revealed: AtomicBool,
    is_deaf: Arc<AtomicBool>,
    asked: AtomicU64,
    state: Mutex<FakeState>,
}

#[derive(Default)]
struct FakeState {
    /// Requests in flight by the text of their id, to be notified when cancelled.
    calls: HashMap<String, Arc<Notify>>,
    /// Our own requests that wait for the client's answer.
    asks: HashMap<String, oneshot::Sender<Value>>,
    /// The modern client's `subscriptions/listen`: the id of each, and its filter.
    subscriptions: Vec<(Value, Value)>,
}

impl FakeState {
    /// Returns the streams that get a notification: for a resource every stream that subscribed to
    /// it, otherwise the last stream.
    fn subscriptions_for(&self, method: &str, uri: &Value) -> Vec<Value> {
        let is_wanted = |filter: &Value| {
            let uris = filter["resourceSubscriptions"].as_array();
            method == "notifications/resources/updated" && uris.is_some_and(|it| it.contains(uri))
        };
        let wanted = self.subscriptions.iter().filter(|it| is_wanted(&it.1));
        let wanted: Vec<Value> = wanted.map(|(id, _)| id.clone()).collect();
        if wanted.is_empty() {
            let last = self.subscriptions.last();
            return last.map(|(id, _)| id.clone()).into_iter().collect();
        }
        wanted
    }
}

fn tell(method: &str, params: &Value) {
    write_line(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string());
}

/// A message, parsed far enough to tell its kind.
#[derive(Deserialize)]
struct Heard<'a> {
    id: Option<Value>,
    method: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WithArguments<'a> {
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

impl FakeRequest {
    /// Returns a placeholder for steps that run without a request.
    fn nobody() -> Self {
        Self {
            id: Value::Null,
            method: String::new(),
            params: Value::Null,
            arguments: String::new(),
        }
    }

    fn read(id: Value, method: String, params: Option<&RawValue>) -> Self {
        let text = params.map_or("null", RawValue::get);
        let raw: Option<WithArguments> = serde_json::from_str(text).ok();
        let arguments = raw
            .and_then(|raw| raw.arguments)
            .map_or("{}", RawValue::get)
            .to_owned();
        Self {
            id,
            method,
            params: serde_json::from_str(text).unwrap_or_default(),
            arguments,
        }
    }
}

impl Fake {
    fn new(script: Script) -> Self {
        Self {
            script,
            initialized: AtomicBool::new(false),
            revealed: AtomicBool::new(false),
            is_deaf: Arc::default(),
            asked: AtomicU64::new(0),
            state: Mutex::default(),
        }
    }

    fn with_state<T>(&self, work: impl FnOnce(&mut FakeState) -> T) -> T {
        work(&mut self.state.lock())
    }

    async fn live(self: Arc<Self>) {
        let nobody = FakeRequest::nobody();
        self.run_steps(&self.script.before, &nobody).await;
        let mut lines = read_lines(Arc::clone(&self.is_deaf));
        let mut tasks = JoinSet::new();
        loop {
            tokio::select! {
                line = lines.recv() => match line {
                    Some(line) => self.hear(&line, &mut tasks),
                    None => break,
                },
                Some(_) = tasks.join_next() => {}
            }
        }
        self.remark(&json!({ "fake": "stdin ended" }));
        self.run_steps(&self.script.at_end, &nobody).await;
        if self.script.ignores_stdin_end {
            std::future::pending::<()>().await;
        }
    }

    async fn until_terminated(&self, sigterm: &mut Signal) {
        loop {
            sigterm.recv().await;
            self.remark(&json!({ "fake": "sigterm" }));
            if !self.script.ignores_sigterm {
                return;
            }
        }
    }

    /// Handles one line from the client. Messages that must keep their order are handled here; each
    /// request is answered in a task of its own.
    fn hear(self: &Arc<Self>, line: &[u8], tasks: &mut JoinSet<()>) {
        self.record(line);
        let Ok(heard) = serde_json::from_slice::<Heard>(line) else {
            return;
        };
        match (heard.id, heard.method) {
            (Some(id), Some(method)) => {
                let request = FakeRequest::read(id, method, heard.params);
                let cancelled = Arc::new(Notify::new());
                self.with_state(|state| state.calls.insert(request.id.to_string(), cancelled));
                tasks.spawn(Arc::clone(self).answer(request));
            }
            (Some(id), None) => {
                let ask = self.with_state(|state| state.asks.remove(&id.to_string()));
                let answer = serde_json::from_slice(line).unwrap_or_default();
                ask.map(|ask| ask.send(answer));
            }
            (None, Some(method)) => {
                let params = heard
                    .params
                    .and_then(|raw| serde_json::from_str(raw.get()).ok());
                self.hear_notification(&method, &params.unwrap_or_default(), tasks);
            }
            (None, None) => {}
        }
    }

    fn hear_notification(self: &Arc<Self>, method: &str, params: &Value, tasks: &mut JoinSet<()>) {
        match method {
            "notifications/initialized" => {
                let fake = Arc::clone(self);
                tasks.spawn(async move {
                    fake.run_steps(&fake.script.on_initialized, &FakeRequest::nobody())
                        .await;
                });
            }
            "notifications/cancelled" => {
                let id = params["requestId"].to_string();
                self.with_state(|state| {
                    state
                        .subscriptions
                        .retain(|(of, _)| *of != params["requestId"]);
                });
                if let Some(call) = self.with_state(|state| state.calls.get(&id).cloned()) {
                    call.notify_one();
                }
            }
            _ => {}
        }
    }

    async fn answer(self: Arc<Self>, request: FakeRequest) {
        match self.refusal(&request) {
            Some(refusal) => send_error(&request, &refusal),
            None if request.method == "tools/call" => self.call(&request).await,
            None => {
                let revealed = self.revealed.load(Ordering::SeqCst);
                let item = items::find(&self.script, &request, revealed);
                let steps = item.map_or_else(|| self.steps_for(&request.method), |it| &it.steps);
                self.run_steps(steps, &request).await;
            }
        }
        self.with_state(|state| state.calls.remove(&request.id.to_string()));
    }

    fn steps_for(&self, method: &str) -> &[Step] {
        let steps = match method {
            "initialize" => self.script.on_initialize.as_deref(),
            "server/discover" => self.script.on_discover.as_deref(),
            "tools/list" => self.script.on_list.as_deref(),
            _ => None,
        };
        steps.unwrap_or(&[Step::Proper])
    }

    /// Returns the error for a request that the era does not allow.
    fn refusal(&self, request: &FakeRequest) -> Option<Value> {
        let opens = ["initialize", "server/discover"].contains(&request.method.as_str());
        match (self.script.era, request.method.as_str()) {
            (Era::Modern, "initialize") => Some(answers::error(-32601, "no initialize here")),
            (Era::Legacy, "server/discover") => {
                let code = self.script.discover_refusal.unwrap_or(-32601);
                Some(answers::error(code, "what is server/discover?"))
            }
            (_, "initialize") => None,
            (Era::Legacy | Era::Both, _) if self.initialized.load(Ordering::SeqCst) => None,
            (Era::Legacy, "ping") => None,
            (Era::Legacy, _) => Some(answers::error(-32600, "initialize comes first")),
            _ if request.is_modern() => None,
            _ if opens => Some(answers::error(
                -32602,
                "_meta lacks what every request needs",
            )),
            _ => Some(answers::error(
                -32602,
                "neither initialized nor with a _meta of its own",
            )),
        }
    }

    async fn call(&self, request: &FakeRequest) {
        let revealed = self.revealed.load(Ordering::SeqCst);
        let shown = |hidden: bool| revealed || !hidden;
        let name = request.params["name"].as_str().unwrap_or_default();
        let tool = self
            .script
            .tools
            .iter()
            .find(|it| it.name() == name && shown(it.hidden));
        match tool {
            Some(tool) => self.run_steps(&tool.steps, request).await,
            None => send_error(request, &answers::error(-32602, "unknown tool")),
        }
    }

    async fn run_steps(&self, steps: &[Step], request: &FakeRequest) {
        for step in steps {
            self.run_step(step, request).await;
        }
    }

    async fn run_step(&self, step: &Step, request: &FakeRequest) {
        match step {
            Step::WaitMs(ms) => tokio::time::sleep(Duration::from_millis(*ms)).await,
            Step::UntilCancelled => self.until_cancelled(request).await,
            Step::UntilExists(path) => {
                while !path.exists() {
                    tokio::time::sleep(LOOK_EVERY).await;
                }
            }
            Step::UntilNewFile { folder, at_most_ms } if request.is_first() => {
                let until = timeout(Duration::from_millis(*at_most_ms), new_file_in(folder));
                drop(until.await);
            }
            Step::UntilNewFile { .. } => {}
            Step::Unless {
                argument,
                value,
                steps,
            } => {
                if request.params["arguments"][argument] != *value {
                    Box::pin(self.run_steps(steps, request)).await;
                }
            }
            Step::Ask { method, params } => drop(self.ask(method, params).await),
            Step::AskAndTell { method, params } => {
                let answer = self.ask(method, params).await;
                let told = answer.get("result").or_else(|| answer.get("error"));
                let told = told.map(Value::to_string).unwrap_or_default();
                self.send_result(request, answers::text_result(&told));
            }
            Step::Proper => self.answer_properly(request),
            Step::Reveal => {
                self.revealed.store(true, Ordering::SeqCst);
                for method in items::changes(&self.script) {
                    self.notify(method, json!({}), request);
                }
            }
            Step::Inquire { rounds, result } => self.inquire(rounds, result, request).await,
            Step::Notify { method, params } => self.notify(method, params.clone(), request),
            Step::Flood {
                times,
                method,
                params,
            } => {
                for _ in 0..*times {
                    self.notify(method, params.clone(), request);
                }
            }
            Step::Repeat {
                until,
                pause_ms,
                step,
            } => {
                while !until.exists() {
                    Box::pin(self.run_step(step, request)).await;
                    tokio::time::sleep(Duration::from_millis(*pause_ms)).await;
                }
            }
            Step::HoldLock(place) => {
                if !hold_lock(place) {
                    self.remark(&json!({ "fake": "two owners" }));
                }
            }
            Step::Remark(remark) => self.remark(&json!({ "fake": remark })),
            Step::StopReading => self.is_deaf.store(true, Ordering::SeqCst),
            other => self.run_step_of_process(other, request),
        }
    }

    /// Runs a step that needs neither waiting nor the client.
    fn run_step_of_process(&self, step: &Step, request: &FakeRequest) {
        match step {
            Step::Spawn => spawn_a_sleeper(),
            Step::Exit(code) => std::process::exit(*code),
            Step::ExitOnce(path) => {
                if fs::File::create_new(path).is_ok() {
                    std::process::exit(1);
                }
            }
            Step::Stderr(text) => drop(io::stderr().write_all(text.as_bytes())),
            Step::StderrOfBytes(bytes) => {
                drop(io::stderr().write_all(payload::text(*bytes).as_bytes()));
            }
            Step::Bytes(bytes) => write_out(bytes),
            Step::Line(line) => write_line(&line.replace("$ID", &request.id.to_string())),
            answer => self.send(answer, request),
        }
    }

    /// Sends the answer of a step that only answers.
    fn send(&self, answer: &Step, request: &FakeRequest) {
        let text_result = |text: &str| self.send_result(request, answers::text_result(text));
        match answer {
            Step::Echo => text_result(&request.arguments),
            Step::Environment => {
                let variables: HashMap<String, String> = std::env::vars().collect();
                text_result(&json!(variables).to_string());
            }
            Step::Folder => {
                let folder = std::env::current_dir().unwrap_or_default();
                text_result(&folder.display().to_string());
            }
            Step::Text(text) => text_result(text),
            Step::TextOfBytes(bytes) => text_result(&payload::text(*bytes)),
            Step::Lines(count) => text_result(&payload::lines(*count)),
            Step::StructuredOfBytes(bytes) => {
                let items = payload::items(*bytes);
                let mut result = answers::text_result(&items.to_string());
                result["structuredContent"] = items;
                self.send_result(request, result);
            }
            Step::ToolError(text) => {
                let mut result = answers::text_result(text);
                result["isError"] = json!(true);
                self.send_result(request, result);
            }
            Step::RequireInput(requests) => {
                let params = &request.params;
                let result = if params["inputResponses"].is_null() {
                    json!({ "resultType": "input_required", "inputRequests": requests,
                        "requestState": "the fake's" })
                } else {
                    let heard = json!([params["inputResponses"], params["requestState"]]);
                    answers::text_result(&heard.to_string())
                };
                self.send_result(request, result);
            }
            Step::Result(result) => self.send_result(request, result.clone()),
            Step::Filled(result) => {
                self.send_result(request, items::fill(&self.script, result, request));
            }
            Step::RawResult(raw) => {
                write_line(&format!(
                    r#"{{"jsonrpc":"2.0","id":{},"result":{raw}}}"#,
                    request.id
                ));
            }
            Step::Error(error) => send_error(request, error),
            Step::Task => self.send_task(request),
            other => unreachable!("run_step runs {other:?}"),
        }
    }

    fn send_task(&self, request: &FakeRequest) {
        let task = self.script.task.as_ref().expect("the script has a task");
        let mut state = task.state(request.is_modern());
        if request.is_modern() {
            state["resultType"] = json!("task");
            self.send_result(request, state);
        } else if request.params["task"].is_object() {
            self.send_result(request, json!({ "task": state }));
        } else {
            send_error(request, &answers::error(-32601, "this tool needs a task"));
        }
    }

    fn answer_properly(&self, request: &FakeRequest) {
        let script = &self.script;
        let result = match request.method.as_str() {
            "initialize" => {
                self.initialized.store(true, Ordering::SeqCst);
                Ok(answers::initialize(script, request))
            }
            "server/discover" => Ok(answers::discover(script)),
            "tools/list" => answers::page(script, request, self.revealed.load(Ordering::SeqCst)),
            "ping" | "logging/setLevel" => Ok(json!({})),
            "subscriptions/listen" => return self.subscribe(request),
            _ => items::answer(script, request, self.revealed.load(Ordering::SeqCst)),
        };
        match result {
            Ok(result) => self.send_result(request, result),
            Err(error) => send_error(request, &error),
        }
    }

    /// Sends the acknowledgement first, and the response at the end of the subscription.
    fn subscribe(&self, request: &FakeRequest) {
        let filter = &request.params["notifications"];
        let subscription = (json!(request.id), filter.clone());
        self.with_state(|state| state.subscriptions.push(subscription));
        let accepted = json!({ "notifications": filter });
        self.notify(
            "notifications/subscriptions/acknowledged",
            accepted,
            request,
        );
    }

    fn notify(&self, method: &str, mut params: Value, request: &FakeRequest) {
        if params["progressToken"] == "$PROGRESS" {
            params["progressToken"] = request.params["_meta"]["progressToken"].clone();
        }
        let ids = self.with_state(|state| state.subscriptions_for(method, &params["uri"]));
        if ids.is_empty() {
            return tell(method, &params);
        }
        for id in ids {
            params["_meta"][META_SUBSCRIPTION] = id;
            tell(method, &params);
        }
    }

    /// Returns the whole response; null if the client has exited.
    async fn ask(&self, method: &str, params: &Value) -> Value {
        let id = json!(format!(
            "fake-{}",
            self.asked.fetch_add(1, Ordering::SeqCst)
        ));
        let (sender, answered) = oneshot::channel();
        self.with_state(|state| state.asks.insert(id.to_string(), sender));
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        write_line(&request.to_string());
        answered.await.unwrap_or_default()
    }

    async fn inquire(&self, rounds: &[Value], result: &Value, request: &FakeRequest) {
        if !request.is_modern() {
            for question in rounds.iter().flat_map(inquiry::requests) {
                let (method, params) = question;
                drop(self.ask(method, params).await);
            }
            return self.send_result(request, result.clone());
        }
        match inquiry::answer(rounds, result, request) {
            Ok(result) => self.send_result(request, result),
            Err(error) => send_error(request, &error),
        }
    }

    async fn until_cancelled(&self, request: &FakeRequest) {
        let id = request.id.to_string();
        if let Some(cancelled) = self.with_state(|state| state.calls.get(&id).cloned()) {
            cancelled.notified().await;
        }
    }

    fn send_result(&self, request: &FakeRequest, mut result: Value) {
        if request.is_modern() {
            result = answers::modernize(result, &self.script, &request.method);
        }
        write_line(&json!({ "jsonrpc": "2.0", "id": request.id, "result": result }).to_string());
    }

    fn remark(&self, remark: &Value) {
        self.record(remark.to_string().as_bytes());
    }

    /// Writes each line with a single write, so that several fakes may share a file.
    fn record(&self, line: &[u8]) {
        if let Some(path) = &self.script.record {
            let file = fs::OpenOptions::new().create(true).append(true).open(path);
            let mut bytes = line.to_vec();
            bytes.push(b'\n');
            file.and_then(|mut file| file.write_all(&bytes))
                .expect("the record can be written");
        }
    }
}

fn send_error(request: &FakeRequest, error: &Value) {
    write_line(&json!({ "jsonrpc": "2.0", "id": request.id, "error": error }).to_string());
}

/// Waits until this folder has a file that it does not have now.
async fn new_file_in(folder: &Path) {
    let names = || -> HashSet<OsString> {
        let files = fs::read_dir(folder).into_iter().flatten().flatten();
        files.map(|file| file.file_name()).collect()
    };
    let before = names();
    while names().is_subset(&before) {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

#[expect(
    clippy::zombie_processes,
    reason = "a server that leaves its children is the point"
)]
fn spawn_a_sleeper() {
    Command::new("sleep")
        .arg("3600")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("every system has `sleep`");
}

fn write_line(line: &str) {
    write_out(&[line.as_bytes(), b"\n"].concat());
}

/// Writes to standard output. The write fails if the client has exited; the main loop then reads
/// the end of the input.
fn write_out(bytes: &[u8]) {
    let mut stdout = io::stdout().lock();
    drop(stdout.write_all(bytes).and_then(|()| stdout.flush()));
}

/// Locks a file for as long as this process runs. Returns false if another process holds it.
fn hold_lock(place: &std::path::Path) -> bool {
    let file = fs::File::create(place).expect("the test folder is writable");
    let is_held = file.try_lock().is_ok();
    std::mem::forget(file);
    is_held
}
