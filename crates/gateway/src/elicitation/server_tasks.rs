//! Tasks of servers: a call that is answered with a task is followed until the task has ended, in both
//! forms of the protocol (2025-11-25, and the extension of 2026-07-28).

use std::{borrow::Cow, sync::Arc, time::Duration};

use fleet::{CallError, Failure, Ran, Request, Servers};
use jsonrpc::{Fields, Json, KnownString, ProtocolError, mcp::TASKS_EXTENSION, quote, text_of};
use serde::{Deserialize, Serialize};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};
use tokio_util::sync::CancellationToken;
use tool::{Literal, ServerName, Tool};

use super::requested_input::{RequestedInput, RoundError};
use crate::elicitation::ServerAsker;

/// The time between two looks at a task whose server proposes none, and the bounds of a proposed one.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const LOOK_MIN: Duration = Duration::from_millis(50);
const LOOK_MAX: Duration = Duration::from_secs(30);

/// The limit of one look.
const LOOK_LIMIT: Duration = Duration::from_secs(30);

/// The time that a task may take without a limit of its own: that of jobs which a person waits for.
pub(crate) const TASK_LIMIT: Duration = Duration::from_hours(1);

/// The most looks in a row that may fail before the task counts as lost.
const LOOKS_FAILED_MAX: u32 = 3;

static TASK_SUPPORT: Literal = Literal::new(r#""taskSupport""#);

/// Returns the member of a call that asks for a task, if the tool can be called in no other way
/// (2025-11-25). Servers of other revisions ignore it.
pub(crate) fn task_parameter(tool: &Tool) -> Option<(Cow<'static, str>, Json)> {
    if !TASK_SUPPORT.is_in(tool.json()) {
        return None;
    }
    let execution = Fields::of(tool.json()).and_then(|it| it.get("execution"))?;
    let support = Fields::of(execution.get()).and_then(|it| text_of(it.get("taskSupport")?))?;
    (support == "required").then(|| ("task".into(), Json::of_built("{}".to_owned())))
}

/// A task as its server describes it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ServerTask {
    id: String,
    status: String,
    message: String,
    look_every: Duration,
    /// True for the form of the extension, in which the state has the result.
    is_extension: bool,
}

impl ServerTask {
    /// Reads the answer to a call; `None` if it is a result.
    pub(crate) fn of_answer(answer: &Json, is_asked_for: bool) -> Option<Self> {
        let text = answer.as_str();
        // The members of a large result are not read.
        if !answer.may_contain(KnownString::TaskId) {
            return None;
        }
        let fields = Fields::of(text)?;
        let kind = fields.get("resultType").and_then(text_of);
        if kind.as_deref() == Some("task") {
            return Self::read(&fields, true);
        }
        let within = fields.get("task").filter(|_| is_asked_for)?;
        Self::read(&Fields::of(within.get())?, false)
    }

    fn read(fields: &Fields<'_>, is_extension: bool) -> Option<Self> {
        let text = |key| fields.get(key).and_then(text_of).map(Cow::into_owned);
        let mut keys = ["pollIntervalMs", "pollInterval"].into_iter();
        let ms = keys.find_map(|key| fields.get(key)?.get().parse().ok());
        let look_every = ms.map_or(LOOK_EVERY, Duration::from_millis);
        Some(Self {
            id: text("taskId")?,
            status: text("status").unwrap_or_default(),
            message: printable::one_line_of(&text("statusMessage").unwrap_or_default(), 300),
            look_every: look_every.clamp(LOOK_MIN, LOOK_MAX),
            is_extension,
        })
    }

    /// The same task for another process, which knows nothing of its state.
    pub(crate) fn afresh(mut self) -> Self {
        "working".clone_into(&mut self.status);
        self.look_every = LOOK_MIN;
        self
    }

    fn request(&self, method: &'static str, of: &Request) -> Request {
        let id = Json::of_built(quote(&self.id));
        Request {
            asks: of.asks.clone(),
            log: of.log.clone(),
            client: of.client.clone(),
            timeout: Some(LOOK_LIMIT),
            ..Request::new(method, vec![("taskId".into(), id)])
        }
    }
}

/// A task of a server that a client's own task waits for: enough to go on after a restart.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HeldTask {
    pub(crate) server: String,
    /// The part of the result that its caller gets, in tokens.
    pub(crate) max_tokens: u64,
    pub(crate) task: ServerTask,
}

/// Receives the server's task of a call that its client may take as a task.
pub(crate) type TaskNote = Arc<watch::Sender<Option<HeldTask>>>;

/// Follows a task until it has ended, and returns the result of the call. If nobody waits any more, the
/// server is told that the task is cancelled.
pub(crate) async fn follow(
    servers: &Arc<dyn Servers>,
    server: &ServerName,
    request: &Request,
    task: ServerTask,
    asker: Option<&ServerAsker>,
    cancel: &CancellationToken,
) -> Result<Json, RoundError> {
    let limit = request.timeout.filter(|_| request.timeout_is_final);
    let limit = limit.unwrap_or(TASK_LIMIT);
    let mut guard = CancelGuard {
        servers: Arc::clone(servers),
        server: server.clone(),
        cancel: Some(task.request("tasks/cancel", request)),
    };
    let following = Following {
        servers,
        server,
        request,
        asker,
        cancel,
    };
    let ended = tokio::select! {
        ended = following.until_ended(task) => ended,
        () = sleep_until(Instant::now() + limit) => {
            return Err(RoundError::Call(CallError::TimedOut {
                server: server.clone(),
                limit,
                ran: Ran::Maybe,
                held_up: None,
            }));
        }
        () = cancel.cancelled() => return Err(RoundError::Call(CallError::Cancelled)),
    };
    guard.cancel = None;
    ended
}

struct Following<'f> {
    servers: &'f Arc<dyn Servers>,
    server: &'f ServerName,
    request: &'f Request,
    asker: Option<&'f ServerAsker>,
    cancel: &'f CancellationToken,
}

impl Following<'_> {
    async fn until_ended(&self, mut task: ServerTask) -> Result<Json, RoundError> {
        let mut answered: Vec<String> = Vec::new();
        let mut failed = 0;
        let mut state: Option<Json> = None;
        loop {
            match (task.status.as_str(), task.is_extension, &state) {
                ("completed", true, Some(state)) => return self.result(state),
                ("failed", true, Some(state)) => return Err(self.failure(state, &task)),
                // The result of the earlier form, also of a failed call; questions come while it is
                // waited for.
                ("completed" | "failed" | "input_required", false, _) => {
                    return self.fetch(&task).await;
                }
                ("cancelled", ..) => return Err(self.refuse("was cancelled by its server", &task)),
                ("input_required", true, Some(state)) => {
                    self.answer(state, &task, &mut answered).await?;
                }
                _ => {}
            }
            sleep(task.look_every).await;
            match self.ask(&task.request("tasks/get", self.request)).await {
                Ok(now) => {
                    failed = 0;
                    let read = Fields::of(now.as_str());
                    let read = read.and_then(|it| ServerTask::read(&it, task.is_extension));
                    task = read.ok_or_else(|| self.refuse("has no readable state", &task))?;
                    state = Some(now);
                }
                Err(error @ CallError::Protocol { .. }) => return Err(self.lost(&task, &error)),
                Err(error) => {
                    failed += 1;
                    if failed >= LOOKS_FAILED_MAX {
                        return Err(self.lost(&task, &error));
                    }
                }
            }
        }
    }

    async fn ask(&self, request: &Request) -> Result<Json, CallError> {
        self.servers.call(self.server, request, self.cancel).await
    }

    async fn fetch(&self, task: &ServerTask) -> Result<Json, RoundError> {
        let request = Request {
            timeout: Some(TASK_LIMIT),
            progress: self.request.progress.clone(),
            ..task.request("tasks/result", self.request)
        };
        Ok(self.ask(&request).await?)
    }

    fn result(&self, state: &Json) -> Result<Json, RoundError> {
        let result = Fields::of(state.as_str()).and_then(|it| it.get("result"));
        result.map(|it| Json::from(it.to_owned())).ok_or_else(|| {
            let why = "its server says that its task is completed, and has no result";
            RoundError::Call(self.protocol(why.to_owned()))
        })
    }

    fn failure(&self, state: &Json, task: &ServerTask) -> RoundError {
        match Fields::of(state.as_str()).and_then(|it| it.get("error")) {
            Some(error) => RoundError::Call(CallError::Protocol {
                server: self.server.clone(),
                error: ProtocolError::read(error),
            }),
            None => self.refuse("failed", task),
        }
    }

    async fn answer(
        &self,
        state: &Json,
        task: &ServerTask,
        answered: &mut Vec<String>,
    ) -> Result<(), RoundError> {
        let Some(mut wanted) = RequestedInput::of_task(state) else {
            return Ok(());
        };
        wanted.without(answered);
        if wanted.is_empty() {
            return Ok(());
        }
        let responses = wanted.ask(self.asker).await;
        let responses = responses.map_err(RoundError::Unanswered)?;
        answered.extend(wanted.keys());
        let mut request = task.request("tasks/update", self.request);
        request.params.push(("inputResponses".into(), responses));
        self.ask(&request).await?;
        Ok(())
    }

    fn protocol(&self, message: String) -> CallError {
        CallError::Protocol {
            server: self.server.clone(),
            error: ProtocolError {
                code: "-32603".to_owned(),
                message,
                data: None,
            },
        }
    }

    fn refuse(&self, what: &str, task: &ServerTask) -> RoundError {
        let mut message = format!("the task {what}");
        if !task.message.is_empty() {
            message = format!("{message}: {}", task.message);
        }
        RoundError::Call(self.protocol(message))
    }

    /// The server does not know the task any more, mostly because it was restarted.
    fn lost(&self, task: &ServerTask, error: &CallError) -> RoundError {
        let id = printable::one_line_of(&task.id, 80);
        let why = format!("it does not tell of its task {id} any more ({error})");
        RoundError::Call(CallError::Unavailable {
            server: self.server.clone(),
            failure: Failure::new(why),
            tries: 0,
            ran: Ran::Maybe,
        })
    }
}

/// Cancels the task at its server when the call is dropped.
struct CancelGuard {
    servers: Arc<dyn Servers>,
    server: ServerName,
    cancel: Option<Request>,
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        let Some(request) = self.cancel.take() else {
            return;
        };
        let (servers, server) = (Arc::clone(&self.servers), self.server.clone());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let never = CancellationToken::new();
                // The server decides, and need not confirm.
                let _ = servers.call(&server, &request, &never).await;
            });
        }
    }
}

/// Returns true if these capabilities of a client have the extension.
pub(crate) fn takes_tasks(capabilities: &str) -> bool {
    let extensions = Fields::of(capabilities).and_then(|it| it.get("extensions"));
    let extension = extensions.and_then(|it| Fields::of(it.get())?.get(TASKS_EXTENSION));
    extension.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> Json {
        Json::of_built(text.to_owned())
    }

    #[test]
    fn a_task_is_told_from_a_result() {
        let check = |text: &str, is_asked_for: bool, expected: Option<(&str, u128)>| {
            let read = ServerTask::of_answer(&answer(text), is_asked_for);
            let read = read
                .as_ref()
                .map(|it| (it.id.as_str(), it.look_every.as_millis()));
            assert_eq!(read, expected, "{text}");
        };
        let extension =
            r#"{"resultType":"task","taskId":"a","status":"working","pollIntervalMs":200}"#;
        check(extension, false, Some(("a", 200)));
        let earlier = r#"{"task":{"taskId":"b","status":"working","pollInterval":900000}}"#;
        check(earlier, true, Some(("b", 30_000)));
        // A tool may return such a member of its own.
        check(earlier, false, None);
        check(
            r#"{"content":[],"structuredContent":{"taskId":"c"}}"#,
            true,
            None,
        );
        check(r#"{"resultType":"task"}"#, true, None);
    }

    #[test]
    fn only_a_tool_that_requires_a_task_is_called_with_one() {
        let check = |execution: &str, expected: bool| {
            let tool = Tool::parse(&format!(r#"{{"name":"a"{execution}}}"#)).expect("a tool");
            assert_eq!(task_parameter(&tool).is_some(), expected, "{execution}");
        };
        check(r#","execution":{"taskSupport":"required"}"#, true);
        check(r#","execution":{"taskSupport":"optional"}"#, false);
        check("", false);
    }
}
