//! The side of a script that starts its process, answers what it asks and holds it to its limits.

use std::{ffi::OsString, fmt, io, path::PathBuf, process::Stdio, time::Duration};

use futures::{FutureExt as _, StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Take},
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::Semaphore,
};

use crate::{
    clock::Clock,
    limits::{
        BYTES_IN_MAX, BYTES_OUT_MAX, CALLS_MAX, Limit, PARALLEL_MAX, QUESTIONS_MAX,
        SCRIPT_BYTES_MAX,
    },
    message::{Asked, CallSite, FromScript, Job, Question, ToScript},
};

/// What a script reaches. Its futures are dropped when the script ends before they do.
pub trait Tools: Sync {
    /// The mistakes in what a script names, before any of it runs.
    fn check(&self, calls: Vec<CallSite>) -> BoxFuture<'_, Vec<String>>;

    /// The answer to one question, as JSON.
    fn answer(&self, question: Question) -> BoxFuture<'_, Answer>;
}

/// JSON, or why there is none.
pub type Answer = Result<Box<RawValue>, Refusal>;

/// Why a question has no answer: a script can catch it.
#[derive(Debug, Clone, Serialize)]
pub struct Refusal {
    /// A word for programs.
    pub code: String,
    /// The server that was asked.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// A sentence.
    pub text: String,
}

/// What became of a script.
#[derive(Debug)]
pub struct Outcome {
    /// Its value, or why there is none.
    pub ended: Ended,
    /// What it printed.
    pub log: String,
    /// Calls of tools that it made.
    pub calls: usize,
}

/// The end of a script.
#[derive(Debug)]
pub enum Ended {
    /// With this value, as JSON.
    Value(Box<RawValue>),
    /// It threw, or cannot be read.
    Failed {
        /// Why.
        text: String,
        /// Where, from 1.
        line: Option<u32>,
    },
    /// It met a limit.
    Exceeded(Limit),
}

/// Our own fault: no script could be run.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// Its process could not be started or spoken to.
    #[error("the process of the script: {0}")]
    Process(#[from] io::Error),
    /// It ended without a word.
    #[error("the process of the script ended without an answer{0}")]
    Gone(String),
}

/// Starts processes for scripts; one waits ready, so that a script does not wait for it.
pub struct Runner {
    program: PathBuf,
    arguments: Vec<OsString>,
    ready: Mutex<Option<Child>>,
}

impl Runner {
    /// `program` with `arguments` is a process that runs [`work_as_helper`](crate::work_as_helper).
    pub fn new(program: PathBuf, arguments: Vec<OsString>) -> Self {
        Self {
            program,
            arguments,
            ready: Mutex::new(None),
        }
    }

    /// Our own program, as it runs scripts.
    pub fn of_own_program() -> Option<Self> {
        let program = processes::own_program()?;
        Some(Self::new(program, vec!["script-helper".into()]))
    }

    /// Runs a script to its end, or that of its time. Dropped before, it ends the process, and
    /// whatever it asked for.
    pub async fn run(
        &self,
        job: &Job,
        clock: &Clock,
        tools: &dyn Tools,
    ) -> Result<Outcome, ScriptError> {
        if job.script.len() > SCRIPT_BYTES_MAX {
            return Ok(Outcome {
                ended: Ended::Exceeded(Limit::Length),
                log: String::new(),
                calls: 0,
            });
        }
        let mut child = self.take()?;
        let mut talk = Talk::new(&mut child, tools)?;
        let said = tokio::select! {
            biased;
            said = talk.hold(job) => Some(said),
            () = clock.run_out() => None,
        };
        let (log, calls) = (std::mem::take(&mut talk.log), talk.calls);
        drop(talk);
        let ended = match said {
            None => Ok(Ended::Exceeded(Limit::Wall)),
            Some(Ok(Some(ended))) => Ok(ended),
            Some(Ok(None)) => how_it_ended(&mut child).await,
            Some(Err(error)) => Err(error.into()),
        };
        // It has answered, or never will.
        let _ = child.start_kill();
        let _ = child.wait().await;
        Ok(Outcome {
            ended: ended?,
            log,
            calls,
        })
    }

    /// Ends the process that waits.
    pub async fn stop(&self) {
        let ready = self.ready.lock().take();
        if let Some(mut child) = ready {
            let _ = child.kill().await;
        }
    }

    /// The process that waits, or a new one; another is got ready in its place.
    fn take(&self) -> io::Result<Child> {
        let ready = self.ready.lock().take();
        let alive = ready.and_then(|mut child| match child.try_wait() {
            Ok(None) => Some(child),
            _ => None,
        });
        let child = alive.map_or_else(|| self.start(), Ok)?;
        *self.ready.lock() = self.start().ok();
        Ok(child)
    }

    fn start(&self) -> io::Result<Child> {
        Command::new(&self.program)
            .args(&self.arguments)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
    }
}

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner").finish_non_exhaustive()
    }
}

/// The limit of the system that ended a process, as its signal tells.
async fn how_it_ended(child: &mut Child) -> Result<Ended, ScriptError> {
    use std::os::unix::process::ExitStatusExt as _;

    let status = child.wait().await?;
    let signal = status.signal();
    // SIGXCPU and SIGKILL; SIGSEGV; SIGABRT.
    match signal {
        Some(24 | 9) => Ok(Ended::Exceeded(Limit::Processor)),
        Some(11) => Ok(Ended::Exceeded(Limit::Depth)),
        Some(6) => Ok(Ended::Exceeded(Limit::Memory)),
        _ => Err(ScriptError::Gone(format!(" ({status})"))),
    }
}

/// One script's questions and answers.
struct Talk<'a> {
    stdin: ChildStdin,
    lines: BufReader<Take<ChildStdout>>,
    tools: &'a dyn Tools,
    turns: Semaphore,
    log: String,
    calls: usize,
    questions: usize,
    bytes_in: usize,
}

impl<'a> Talk<'a> {
    fn new(child: &mut Child, tools: &'a dyn Tools) -> io::Result<Self> {
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        let stdout = child.stdout.take().ok_or_else(gone)?;
        Ok(Self {
            stdin: child.stdin.take().ok_or_else(gone)?,
            lines: BufReader::new(stdout.take(BYTES_OUT_MAX as u64)),
            tools,
            turns: Semaphore::new(PARALLEL_MAX),
            log: String::new(),
            calls: 0,
            questions: 0,
            bytes_in: 0,
        })
    }

    /// Until the script has ended; none where its process has, without a word.
    async fn hold(&mut self, job: &Job) -> io::Result<Option<Ended>> {
        let text = serde_json::to_vec(&RunLine { run: job })?;
        say(&mut self.stdin, text).await?;
        let (tools, turns) = (self.tools, &self.turns);
        let mut answers = FuturesUnordered::new();
        let mut line = Vec::new();
        loop {
            tokio::select! {
                // What was read of a line stays in it when an answer comes first.
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
                            let text = serde_json::to_vec(&ToScript::Checked(mistakes))?;
                            say(&mut self.stdin, text).await?;
                        }
                        FromScript::Log(text) => {
                            self.log.push_str(&text);
                            self.log.push('\n');
                        }
                        FromScript::Done(value) => return Ok(Some(Ended::Value(value))),
                        FromScript::Failed { text, line } => {
                            return Ok(Some(Ended::Failed { text, line }));
                        }
                        FromScript::Exceeded(limit) => return Ok(Some(Ended::Exceeded(limit))),
                    }
                }
                Some(answered) = answers.next() => {
                    let text = serde_json::to_vec(&answered)?;
                    self.bytes_in += text.len();
                    if self.bytes_in > BYTES_IN_MAX {
                        return Ok(Some(Ended::Exceeded(Limit::BytesIn)));
                    }
                    say(&mut self.stdin, text).await?;
                }
            }
        }
    }
}

#[derive(Serialize)]
struct RunLine<'a> {
    run: &'a Job,
}

/// Counts a question; the limit that it is beyond.
fn count(asked: &Asked, calls: &mut usize, questions: &mut usize) -> Option<Limit> {
    let (counted, max, limit) = match asked.what {
        Question::Call { .. } => (calls, CALLS_MAX, Limit::Calls),
        _ => (questions, QUESTIONS_MAX, Limit::Questions),
    };
    if *counted == max {
        return Some(limit);
    }
    *counted += 1;
    None
}

async fn answer(asked: Asked, tools: &dyn Tools, turns: &Semaphore) -> ToScript {
    let Asked { id, what } = asked;
    let answer = if let Question::Sleep { ms } = what {
        tokio::time::sleep(Duration::from_millis(ms)).await;
        Ok(RawValue::NULL.to_owned())
    } else {
        let turn = turns.acquire().await;
        let answer = tools.answer(what).await;
        drop(turn);
        answer
    };
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

/// One message as one line: outside of its strings, JSON may have line ends, which are spaces too.
async fn say(stdin: &mut ChildStdin, mut text: Vec<u8>) -> io::Result<()> {
    for byte in &mut text {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    text.push(b'\n');
    // A process that ended before it has read says so by its silence.
    match stdin.write_all(&text).await {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
