//! The side of a script that starts its process, answers its requests and enforces its limits.

use std::{ffi::OsString, fmt, io, path::PathBuf, pin::pin, time::Duration};

use futures::{FutureExt as _, StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Take},
    process::{Child, ChildStdin, ChildStdout},
    sync::{
        Semaphore,
        mpsc::{self, error::TrySendError},
    },
};

use crate::{
    clock::Clock,
    limits::{
        BYTES_IN_MAX, BYTES_OUT_MAX, CALLS_MAX, Limit, PARALLEL_MAX, QUESTIONS_MAX,
        SCRIPT_BYTES_MAX,
    },
    message::{
        CallSite, Failed, FailureKind, FromScript, Job, PendingRequest, ScriptPosition,
        ScriptRequest, ToScript,
    },
};

/// The interface of a script to the proxy. Its futures are dropped if the script ends before they do.
pub trait Tools: Sync {
    /// Returns the errors in the names that a script uses, before any of it runs.
    fn check(&self, calls: Vec<CallSite>) -> BoxFuture<'_, Vec<String>>;

    /// Answers one request, as JSON.
    fn answer(&self, question: ScriptRequest) -> BoxFuture<'_, RequestResult>;
}

/// JSON, or the reason why there is no answer.
pub type RequestResult = Result<Box<RawValue>, RequestError>;

/// The reason why a request has no answer; a script can catch it.
#[derive(Debug, Clone, Serialize)]
pub struct RequestError {
    /// A code for programs.
    pub code: String,
    /// The server of the request.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// A message for people.
    pub text: String,
    /// The limit that was exceeded: the script ends with it and cannot catch it.
    #[serde(skip)]
    pub limit: Option<Limit>,
}

/// The result of a script.
#[derive(Debug)]
pub struct ScriptOutcome {
    /// The return value, or the reason why there is none.
    pub ended: Ended,
    /// The output that the script printed.
    pub log: String,
    /// The number of tool calls that it made.
    pub calls: usize,
}

/// The end of a script.
#[derive(Debug)]
pub enum Ended {
    /// The script returned this value, as JSON.
    Value(Box<RawValue>),
    /// The script threw an error, or cannot be parsed.
    Failed {
        /// The error message.
        text: String,
        /// The place of the error.
        place: Option<ScriptPosition>,
        /// True if the message is the proxy's own, not that of the script or of a tool.
        is_ours: bool,
    },
    /// The script exceeded a limit.
    Exceeded(Limit),
    /// The process was killed from outside.
    Killed,
    /// The process ended without a result, or sent an invalid one. This is a bug of the proxy.
    Gone(String),
}

/// Starts processes for scripts. One process is started in advance, so that a script does not wait for
/// it.
pub struct Runner {
    program: PathBuf,
    arguments: Vec<OsString>,
    ready: Mutex<Option<Child>>,
}

impl Runner {
    /// Creates a runner. `program` with `arguments` is a process that runs
    /// [`work_as_helper`](crate::work_as_helper).
    pub fn new(program: PathBuf, arguments: Vec<OsString>) -> Self {
        Self {
            program,
            arguments,
            ready: Mutex::new(None),
        }
    }

    /// Creates a runner that starts our own program as the helper.
    pub fn of_own_program() -> Option<Self> {
        let program = processes::own_program()?;
        Some(Self::new(program, vec!["script-helper".into()]))
    }

    /// Runs a script until it ends or its time runs out. Fails if its process cannot be started. If the
    /// future is dropped, the process and every call in progress end.
    pub async fn run(
        &self,
        job: &Job,
        clock: &Clock,
        tools: &dyn Tools,
    ) -> io::Result<ScriptOutcome> {
        if job.script.len() > SCRIPT_BYTES_MAX {
            return Ok(ScriptOutcome {
                ended: Ended::Exceeded(Limit::Length),
                log: String::new(),
                calls: 0,
            });
        }
        let (child, has_waited) = self.take()?;
        let (outcome, is_silent) = run_in(child, job, clock, tools).await?;
        if has_waited && is_silent && matches!(outcome.ended, Ended::Killed) {
            // The idle process may have been killed; no request was sent, so no call is repeated.
            return Ok(run_in(self.start()?, job, clock, tools).await?.0);
        }
        Ok(outcome)
    }

    /// Ends the idle process.
    pub async fn stop(&self) {
        let ready = self.ready.lock().take();
        if let Some(mut child) = ready {
            let _ = child.kill().await;
        }
    }

    /// Returns the idle process and true, or a new one and false; another process is started to wait in
    /// its place.
    fn take(&self) -> io::Result<(Child, bool)> {
        let ready = self.ready.lock().take();
        let alive = ready.and_then(|mut child| match child.try_wait() {
            Ok(None) => Some(child),
            _ => None,
        });
        let has_waited = alive.is_some();
        let child = alive.map_or_else(|| self.start(), Ok)?;
        *self.ready.lock() = self.start().ok();
        Ok((child, has_waited))
    }

    fn start(&self) -> io::Result<Child> {
        processes::start_helper(&self.program, &self.arguments)
    }
}

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner").finish_non_exhaustive()
    }
}

/// Runs a script in a process; the second value is true if the process sent nothing at all.
async fn run_in(
    mut child: Child,
    job: &Job,
    clock: &Clock,
    tools: &dyn Tools,
) -> io::Result<(ScriptOutcome, bool)> {
    let mut connection = ScriptConnection::new(&mut child, tools)?;
    let said = tokio::select! {
        biased;
        said = connection.handle_messages(job) => Some(said),
        () = clock.run_out() => None,
    };
    let (log, calls) = (std::mem::take(&mut connection.log), connection.calls);
    let is_silent = connection.lines.get_ref().limit() == BYTES_OUT_MAX as u64;
    drop(connection);
    let ended = match said {
        None => Ended::Exceeded(Limit::Wall),
        Some(Ok(Some(ended))) => ended,
        Some(Ok(None)) => how_it_ended(&mut child).await?,
        Some(Err(error)) => Ended::Gone(format!("communication with its process failed: {error}")),
    };
    // The process has sent its result, or never will.
    let _ = child.start_kill();
    let _ = child.wait().await;
    Ok((ScriptOutcome { ended, log, calls }, is_silent))
}

/// Returns the reason why a process ended without a result, from its signal.
async fn how_it_ended(child: &mut Child) -> io::Result<Ended> {
    let status = child.wait().await?;
    // The signals are SIGXCPU; SIGKILL, which our limits never send before SIGXCPU; SIGSEGV;
    // SIGABRT.
    Ok(match processes::limit_signal(status) {
        Some(24) => Ended::Exceeded(Limit::Processor),
        Some(9) => Ended::Killed,
        Some(11) => Ended::Exceeded(Limit::Depth),
        Some(6) => Ended::Exceeded(Limit::Memory),
        _ => Ended::Gone(format!("its process ended without a result ({status})")),
    })
}

/// The connection to one script: its requests and their answers.
struct ScriptConnection<'a> {
    stdin: Option<ChildStdin>,
    lines: BufReader<Take<ChildStdout>>,
    tools: &'a dyn Tools,
    turns: Semaphore,
    log: String,
    calls: usize,
    questions: usize,
    bytes_in: usize,
}

impl<'a> ScriptConnection<'a> {
    fn new(child: &mut Child, tools: &'a dyn Tools) -> io::Result<Self> {
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        let stdout = child.stdout.take().ok_or_else(gone)?;
        Ok(Self {
            stdin: child.stdin.take(),
            lines: BufReader::new(stdout.take(BYTES_OUT_MAX as u64)),
            tools,
            turns: Semaphore::new(PARALLEL_MAX),
            log: String::new(),
            calls: 0,
            questions: 0,
            bytes_in: 0,
        })
    }

    /// Handles messages until the script has ended. Returns `None` if its process ended without a
    /// result.
    ///
    /// Reading never waits for writing: a process that is writing does not read, and both sides would
    /// wait forever once the pipes are full. Answers are buffered in the channel, [`BYTES_IN_MAX`] of
    /// them at most.
    async fn handle_messages(&mut self, job: &Job) -> io::Result<Option<Ended>> {
        let (say, said) = mpsc::channel(ANSWERS_MAX);
        let writing = pin!(write_lines(self.stdin.take(), said));
        let mut writing = writing.fuse();
        queue(&say, &RunLine { run: job })?;
        let (tools, turns) = (self.tools, &self.turns);
        let mut answers = FuturesUnordered::new();
        let mut line = Vec::new();
        loop {
            tokio::select! {
                // A part of a line that was read stays in `line` if an answer is ready first.
                read = self.lines.read_until(b'\n', &mut line) => {
                    read?;
                    if line.last() != Some(&b'\n') {
                        let is_full = self.lines.get_ref().limit() == 0;
                        return Ok(is_full.then_some(Ended::Exceeded(Limit::BytesOut)));
                    }
                    let message = serde_json::from_slice(&line)?;
                    line.clear();
                    match message {
                        FromScript::Ask(asked) => {
                            if let Some(limit) = count(&asked, &mut self.calls, &mut self.questions) {
                                return Ok(Some(Ended::Exceeded(limit)));
                            }
                            answers.push(answer(asked, tools, turns).boxed());
                        }
                        FromScript::Check(sites) => {
                            let mistakes = tools.check(sites).await;
                            queue(&say, &ToScript::Checked(mistakes))?;
                        }
                        FromScript::Log(text) => {
                            self.log.push_str(&text);
                            self.log.push('\n');
                        }
                        ended => return Ok(Some(end(ended))),
                    }
                }
                Some((id, answer)) = answers.next() => {
                    if let Some(limit) = answer.as_ref().err().and_then(|refusal| refusal.limit) {
                        return Ok(Some(Ended::Exceeded(limit)));
                    }
                    self.bytes_in += queue(&say, &answered(id, answer))?;
                    if self.bytes_in > BYTES_IN_MAX {
                        return Ok(Some(Ended::Exceeded(Limit::BytesIn)));
                    }
                }
                // If the process no longer reads, it has ended, and its output ends too.
                written = &mut writing => written?,
            }
        }
    }
}

#[derive(Serialize)]
struct RunLine<'a> {
    run: &'a Job,
}

/// The capacity of the queue of lines: the script, an answer to each request, and the errors in its
/// names.
const ANSWERS_MAX: usize = CALLS_MAX + QUESTIONS_MAX + 2;

/// Appends a message to the queue of lines. Returns its size in bytes.
fn queue(lines: &mpsc::Sender<Vec<u8>>, message: &impl Serialize) -> io::Result<usize> {
    let mut line = serde_json::to_vec(message)?;
    jsonrpc::replace_breaks(&mut line);
    line.push(b'\n');
    let bytes = line.len();
    match lines.try_send(line) {
        Err(TrySendError::Full(_)) => Err(io::Error::other("it sent too many requests")),
        // The process no longer reads; the end of its output shows the reason.
        Ok(()) | Err(TrySendError::Closed(_)) => Ok(bytes),
    }
}

/// Writes lines until there are no more, or the process stops reading.
async fn write_lines(
    stdin: Option<ChildStdin>,
    mut lines: mpsc::Receiver<Vec<u8>>,
) -> io::Result<()> {
    let Some(mut stdin) = stdin else {
        return Ok(());
    };
    while let Some(line) = lines.recv().await {
        match stdin.write_all(&line).await {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            written => written?,
        }
    }
    Ok(())
}

fn end(message: FromScript) -> Ended {
    match message {
        FromScript::Done(value) => Ended::Value(value),
        FromScript::Failed(Failed { text, place, kind }) => Ended::Failed {
            text,
            place,
            is_ours: matches!(kind, FailureKind::Unreadable | FailureKind::Refused),
        },
        FromScript::Exceeded(limit) => Ended::Exceeded(limit),
        _ => Ended::Gone("its process sent an unexpected message".to_owned()),
    }
}

/// Counts a request. Returns the limit if the request exceeds it.
fn count(asked: &PendingRequest, calls: &mut usize, questions: &mut usize) -> Option<Limit> {
    let (counted, max, limit) = match asked.what {
        ScriptRequest::Call { .. } => (calls, CALLS_MAX, Limit::Calls),
        _ => (questions, QUESTIONS_MAX, Limit::Questions),
    };
    if *counted == max {
        return Some(limit);
    }
    *counted += 1;
    None
}

async fn answer(
    asked: PendingRequest,
    tools: &dyn Tools,
    turns: &Semaphore,
) -> (u64, RequestResult) {
    let PendingRequest { id, what } = asked;
    if let ScriptRequest::Sleep { ms } = what {
        tokio::time::sleep(Duration::from_millis(ms)).await;
        return (id, Ok(RawValue::NULL.to_owned()));
    }
    let _turn = turns.acquire().await;
    (id, tools.answer(what).await)
}

fn answered(id: u64, answer: RequestResult) -> ToScript {
    let is_error = answer.is_err();
    let answer = answer.unwrap_or_else(|refusal| {
        serde_json::value::to_raw_value(&refusal).expect("texts are always JSON")
    });
    ToScript::Answered {
        id,
        answer,
        is_error,
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
