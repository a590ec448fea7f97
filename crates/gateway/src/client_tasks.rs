//! Calls that clients take as tasks (SEP-2663): a call that is not answered soon goes on without its
//! request, and its result is kept. A task is on disk: it survives its client, and a restart of the
//! daemon if it waits for a task of a server that survives it.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use dashmap::DashMap;
use files::{clock, write_durable};
use fleet::{ProgressSink, Request, Servers};
use futures::{FutureExt as _, future::BoxFuture};
use jsonrpc::{Fields, Json};
use parking_lot::Mutex;
use results::{Budget, ResultStore, fit};
use serde::{Deserialize, Serialize};
use serde_json::{json, value::RawValue};
use tokio::{
    sync::{oneshot, watch},
    task::AbortHandle,
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use tool::Digest;
use tracing::warn;

use crate::{
    call_context::CallContext,
    elicitation::{
        parked_calls::{Round, RoundCall, WriteLine, random_id},
        requested_input::RoundError,
        server_tasks::{HeldTask, follow},
    },
    forward::{ForwardError, Params, text},
    reply::ToolReply,
};

/// The time after which a call becomes a task.
const TAKE_AFTER: Duration = Duration::from_secs(5);

/// The time for which a task is kept, from its creation.
const KEPT_MS: u64 = 24 * 60 * 60 * 1_000;

/// The interval at which a client may look.
const LOOK_EVERY_MS: u64 = 1_000;

/// The most tasks that run at one time, of all clients; further calls are answered in place.
const RUNNING_MAX: usize = 256;

/// The most tasks on disk; the oldest are removed first.
const FILES_MAX: usize = 1_000;

const PREFIX: &str = "proxy-task-";

/// The requests of the extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskMethod {
    Get,
    Update,
    Cancel,
}

impl TaskMethod {
    pub(crate) fn parse(method: &str) -> Option<Self> {
        match method {
            "tasks/get" => Some(Self::Get),
            "tasks/update" => Some(Self::Update),
            "tasks/cancel" => Some(Self::Cancel),
            _ => None,
        }
    }
}

/// A call that may become a task.
pub(crate) struct TakenCall {
    held: watch::Receiver<Option<HeldTask>>,
    /// True once it is a task: its request is answered, and gets no progress and no log any more.
    is_quiet: Arc<AtomicBool>,
}

impl TakenCall {
    /// Prepares the context of the call.
    pub(crate) fn begin(context: &mut CallContext) -> Self {
        let (note, held) = watch::channel(None);
        context.task_note = Some(Arc::new(note));
        let is_quiet = Arc::<AtomicBool>::default();
        let until_quiet = |send: ProgressSink| -> ProgressSink {
            let is_quiet = Arc::clone(&is_quiet);
            Arc::new(move |params: &RawValue| {
                if !is_quiet.load(Relaxed) {
                    send(params);
                }
            })
        };
        context.progress = context.progress.take().map(until_quiet);
        if let Some(log) = &mut context.log {
            log.send = until_quiet(Arc::clone(&log.send));
        }
        Self { held, is_quiet }
    }
}

/// The answer to a request whose call may become a task.
pub(crate) enum Waited {
    /// The call is done, or asks for more, in time.
    Round(Round),
    /// The call is a task; its description for the client.
    Task(Json),
}

/// A task as it is on disk.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct TaskRecord {
    id: String,
    /// The digest of the client's name and token.
    owner: String,
    status: TaskStatus,
    created_ms: u64,
    updated_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    held: Option<HeldTask>,
    /// The member `result` or `error` of the response to the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outcome: Option<Box<RawValue>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TaskStatus {
    Working,
    InputRequired,
    Completed,
    Failed,
    Cancelled,
}

impl TaskRecord {
    /// The description of the task; `requests` are the open questions.
    fn describe(&self, kind: &str, requests: Option<&str>) -> Json {
        let iso = |ms| {
            let shown: String = clock::show_time(ms).chars().take(19).collect();
            format!("{}Z", shown.replace(' ', "T"))
        };
        let mut members = vec![
            format!(r#""resultType":"{kind}""#),
            format!(r#""taskId":"{}""#, self.id),
            format!(r#""status":{}"#, json!(self.status)),
            format!(r#""createdAt":"{}""#, iso(self.created_ms)),
            format!(r#""lastUpdatedAt":"{}""#, iso(self.updated_ms)),
            format!(r#""ttlMs":{KEPT_MS}"#),
            format!(r#""pollIntervalMs":{LOOK_EVERY_MS}"#),
        ];
        members.extend(requests.map(|it| format!(r#""inputRequests":{it}"#)));
        let key = match self.status {
            TaskStatus::Completed => Some("result"),
            TaskStatus::Failed => Some("error"),
            _ => None,
        };
        let outcome = key.zip(self.outcome.as_ref());
        members.extend(outcome.map(|(key, outcome)| format!(r#""{key}":{outcome}"#)));
        Json::of_built(format!("{{{}}}", members.join(",")))
    }

    fn end(&mut self, status: TaskStatus, outcome: Option<Box<RawValue>>) {
        self.status = status;
        self.outcome = outcome;
        self.updated_ms = clock::now_ms();
    }

    fn fail(&mut self, why: &str) {
        let error = json!({"code": jsonrpc::frame::INTERNAL_ERROR, "message": why});
        let error = RawValue::from_string(error.to_string()).ok();
        self.end(TaskStatus::Failed, error);
    }

    /// Reads the response to the call, which was written for its client.
    fn end_with(&mut self, line: Option<WriteLine>) {
        let written = line.map(|line| line(&Json::of_built("0".to_owned())).concat());
        let text = written.and_then(|bytes| String::from_utf8(bytes).ok());
        let fields = text.as_deref().and_then(Fields::of);
        let part = |key| Some(fields.as_ref()?.get(key)?.to_owned());
        match (part("result"), part("error")) {
            (Some(result), _) => self.end(TaskStatus::Completed, Some(result)),
            (_, Some(error)) => self.end(TaskStatus::Failed, Some(error)),
            _ => self.fail("the request was aborted by an error in the proxy"),
        }
    }

    fn is_over(&self) -> bool {
        matches!(
            self.status,
            TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Cancelled
        )
    }
}

/// A task that runs in this process.
struct RunningTask {
    record: Mutex<TaskRecord>,
    /// The call that waits for answers of its client, and the way back to its job.
    asking: Mutex<Option<(RoundCall, oneshot::Sender<RoundCall>)>>,
    job: Mutex<Option<AbortHandle>>,
    /// Held by the thread that writes the record, so that the last state is written last.
    writing: Mutex<()>,
}

impl RunningTask {
    fn describe(&self, kind: &str) -> Json {
        let asking = self.asking.lock();
        let requests = asking.as_ref().map(|(call, _)| call.requests());
        self.record.lock().describe(kind, requests.as_deref())
    }
}

pub(crate) struct ClientTasks {
    folder: PathBuf,
    servers: Arc<dyn Servers>,
    results: ResultStore,
    running: DashMap<String, Arc<RunningTask>>,
}

impl std::fmt::Debug for ClientTasks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientTasks")
            .field("running", &self.running.len())
            .finish_non_exhaustive()
    }
}

impl ClientTasks {
    pub(crate) fn open(state_dir: &Path, servers: Arc<dyn Servers>, results: ResultStore) -> Self {
        Self {
            folder: state_dir.join("tasks"),
            servers,
            results,
            running: DashMap::new(),
        }
    }

    /// Waits for a call; one that takes longer becomes a task.
    pub(crate) async fn wait(
        self: &Arc<Self>,
        call: RoundCall,
        owner: &str,
        taking: TakenCall,
    ) -> Waited {
        let mut going = call.go_on().boxed();
        if let Ok(round) = timeout(TAKE_AFTER, &mut going).await {
            return Waited::Round(round);
        }
        let Some(id) = self.new_id() else {
            return Waited::Round(going.await);
        };
        let now = clock::now_ms();
        let record = TaskRecord {
            id,
            owner: owner_digest(owner),
            status: TaskStatus::Working,
            created_ms: now,
            updated_ms: now,
            held: taking.held.borrow().clone(),
            outcome: None,
        };
        // A client that knows the id may look at once, and after a restart.
        let (folder, first) = (self.folder.clone(), record.clone());
        let writing = tokio::task::spawn_blocking(move || write(&folder, &first));
        if let Err(error) = writing.await.map_err(io::Error::other).flatten() {
            warn!(%error, "a call could not become a task");
            return Waited::Round(going.await);
        }
        taking.is_quiet.store(true, Relaxed);
        let task = self.admit(record);
        let created = task.describe("task");
        let (tasks, running) = (Arc::clone(self), Arc::clone(&task));
        let job = tokio::spawn(async move { tasks.run(running, going, taking.held).await });
        *task.job.lock() = Some(job.abort_handle());
        Waited::Task(created)
    }

    fn new_id(&self) -> Option<String> {
        let has_room = self.running.len() < RUNNING_MAX;
        has_room.then(|| random_id(PREFIX)).flatten()
    }

    fn admit(&self, record: TaskRecord) -> Arc<RunningTask> {
        let id = record.id.clone();
        let task = Arc::new(RunningTask {
            record: Mutex::new(record),
            asking: Mutex::default(),
            job: Mutex::default(),
            writing: Mutex::default(),
        });
        self.running.insert(id, Arc::clone(&task));
        task
    }

    async fn run(
        &self,
        task: Arc<RunningTask>,
        mut going: BoxFuture<'static, Round>,
        mut held: watch::Receiver<Option<HeldTask>>,
    ) {
        loop {
            let round = tokio::select! {
                biased;
                round = &mut going => round,
                Ok(()) = held.changed() => {
                    task.record.lock().held.clone_from(&held.borrow());
                    self.save(&task).await;
                    continue;
                }
            };
            match round {
                Round::Done(line) => {
                    task.record.lock().end_with(line);
                    return self.finish(&task).await;
                }
                Round::Asks(call) => {
                    let (back, answered) = oneshot::channel();
                    *task.asking.lock() = Some((call, back));
                    task.record.lock().status = TaskStatus::InputRequired;
                    self.save(&task).await;
                    let Ok(call) = answered.await else { return };
                    going = call.go_on().boxed();
                }
            }
        }
    }

    async fn finish(&self, task: &Arc<RunningTask>) {
        self.save(task).await;
        let id = task.record.lock().id.clone();
        self.running.remove(&id);
    }

    /// Writes the state that the task has when it is its turn.
    async fn save(&self, task: &Arc<RunningTask>) {
        let (folder, task) = (self.folder.clone(), Arc::clone(task));
        let writing = tokio::task::spawn_blocking(move || {
            let _turn = task.writing.lock();
            let record = task.record.lock().clone();
            write(&folder, &record)
        });
        if let Err(error) = writing.await.map_err(io::Error::other).flatten() {
            warn!(%error, "a task was not written");
        }
    }

    /// Answers a request of the extension.
    pub(crate) async fn answer(
        self: &Arc<Self>,
        (method, params, responses): (TaskMethod, &Params, Option<&str>),
        context: &CallContext,
    ) -> Result<Json, ForwardError> {
        let id = text(params, "taskId")?;
        let owner = context.client.as_ref().map_or("", |it| &it.name);
        let unknown = || ForwardError::params("Invalid params: this client has no such task");
        let task = match self.find(&id, owner) {
            Some(task) => task,
            None => match self.read(&id, owner).await.ok_or_else(unknown)? {
                over if over.is_over() => {
                    return Ok(match method {
                        TaskMethod::Get => over.describe("complete", None),
                        _ => acknowledged(),
                    });
                }
                record => self.go_on(record, context).await,
            },
        };
        match method {
            TaskMethod::Get => return Ok(task.describe("complete")),
            TaskMethod::Update => {
                let asking = task.asking.lock().take();
                if let Some((mut call, back)) = asking {
                    call.take_answers(responses);
                    task.record.lock().status = TaskStatus::Working;
                    let _ = back.send(call);
                }
            }
            TaskMethod::Cancel => {
                // Dropping the call cancels it at its server.
                if let Some(job) = task.job.lock().take() {
                    job.abort();
                }
                task.asking.lock().take();
                task.record.lock().end(TaskStatus::Cancelled, None);
                self.finish(&task).await;
            }
        }
        Ok(acknowledged())
    }

    fn find(&self, id: &str, owner: &str) -> Option<Arc<RunningTask>> {
        let task = self.running.get(id).map(|it| Arc::clone(&it))?;
        let is_own = task.record.lock().owner == owner_digest(owner);
        is_own.then_some(task)
    }

    async fn read(&self, id: &str, owner: &str) -> Option<TaskRecord> {
        let number = id.strip_prefix(PREFIX)?;
        if number.len() != 32 || !number.bytes().all(|it| it.is_ascii_hexdigit()) {
            return None;
        }
        let file = self.folder.join(format!("{id}.json"));
        let reading = tokio::task::spawn_blocking(move || fs::read(file)).await;
        let record: TaskRecord = serde_json::from_slice(&reading.ok()?.ok()?).ok()?;
        (record.owner == owner_digest(owner)).then_some(record)
    }

    /// Continues a task of an earlier process: with the task of its server, or not at all.
    async fn go_on(
        self: &Arc<Self>,
        mut record: TaskRecord,
        context: &CallContext,
    ) -> Arc<RunningTask> {
        record.status = TaskStatus::Working;
        let held = record.held.clone();
        let task = self.admit(record);
        let Some(held) = held else {
            let why = "the proxy was restarted while the call ran, and its server gave no task to ask \
                       for; the call may have run";
            task.record.lock().fail(why);
            self.finish(&task).await;
            return task;
        };
        let (tasks, running) = (Arc::clone(self), Arc::clone(&task));
        let context = context.clone();
        let job = tokio::spawn(async move {
            match tasks.fetch(&held, &context).await {
                Ok(result) => {
                    let mut record = running.record.lock();
                    record.end(TaskStatus::Completed, Some(result));
                }
                Err(why) => running.record.lock().fail(&why),
            }
            tasks.finish(&running).await;
        });
        *task.job.lock() = Some(job.abort_handle());
        task
    }

    /// Follows the task of a server for a call of an earlier process, and fits its result.
    async fn fetch(&self, held: &HeldTask, context: &CallContext) -> Result<Box<RawValue>, String> {
        let server = held.server.parse();
        let server = server.map_err(|_| "its server has no name".to_owned())?;
        let request = Request {
            client: context.client.clone(),
            ..Request::new("tools/call", Vec::new())
        };
        let task = held.task.clone().afresh();
        let cancel = CancellationToken::new();
        let followed = follow(&self.servers, &server, &request, task, None, &cancel).await;
        let result = followed.map_err(|error| match error {
            RoundError::Call(error) => format!("{error}; the call may have run"),
            RoundError::Unanswered(why) => why,
        })?;
        let origin = context.origin();
        let fitted = fit(result, Budget::new(held.max_tokens), origin, &self.results);
        let line = ToolReply::from(fitted.await).line("0", true).concat();
        let text = String::from_utf8(line).map_err(|error| error.to_string())?;
        let result = Fields::of(&text).and_then(|it| it.get("result").map(ToOwned::to_owned));
        result.ok_or_else(|| "its result could not be read".to_owned())
    }
}

fn write(folder: &Path, record: &TaskRecord) -> io::Result<()> {
    files::private_folder(folder).map_err(io::Error::other)?;
    sweep(folder);
    let bytes = serde_json::to_vec(record)?;
    write_durable(&folder.join(format!("{}.json", record.id)), &bytes)
}

fn acknowledged() -> Json {
    Json::of_built(r#"{"resultType":"complete"}"#.to_owned())
}

fn owner_digest(owner: &str) -> String {
    Digest::of_bytes(owner.as_bytes()).to_string()
}

/// Removes old tasks, and the oldest if there are too many.
fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    let mut all: Vec<(std::time::SystemTime, PathBuf)> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let is_task = entry.file_name().to_string_lossy().starts_with(PREFIX);
            let written = entry.metadata().ok()?.modified().ok()?;
            is_task.then(|| (written, entry.path()))
        })
        .collect();
    all.sort();
    let surplus = all.len().saturating_sub(FILES_MAX);
    let kept = Duration::from_millis(KEPT_MS);
    for (nth, (written, path)) in all.iter().enumerate() {
        let is_old = written.elapsed().is_ok_and(|age| age > kept);
        if nth < surplus || is_old {
            let _ = fs::remove_file(path);
        }
    }
}
