//! One child process: its start, the end of its stderr, and its certain death.

use std::{
    collections::VecDeque,
    io,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex},
};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    net::unix::pipe,
    process::{Child, ChildStderr, Command},
    task::JoinHandle,
    time::timeout,
};
use tracing::debug;

use crate::{
    Launch, Template,
    environment::{find_program, inherited},
    error::Failure,
    limits::{
        EXIT_STATUS_WAIT, GRACE_AFTER_EOF, GRACE_AFTER_TERM, PIPE_BYTES, STDERR_END_WAIT,
        STDERR_LINE_BYTES_MAX, STDERR_LINES_MAX,
    },
    line::{LineReader, Outbox, Sink},
    mask::Mask,
};

/// A running child. It leads a process group of its own, so that wrappers (`npx`, `sh -c`) and
/// what they started are ended together.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    group: Option<Pid>,
    stderr: Arc<Tail>,
    drain: Option<JoinHandle<()>>,
    mask: Mask,
}

/// The two ends we talk through.
#[derive(Debug)]
pub(crate) struct Pipes {
    pub(crate) lines: LineReader,
    pub(crate) outbox: Arc<Outbox>,
}

/// A launch with its variables filled in.
struct Filled {
    command: String,
    args: Vec<String>,
    env: Vec<(String, String)>,
    folder: Option<PathBuf>,
    mask: Mask,
}

impl Running {
    /// Starts the child of a [`Launch::Child`].
    pub(crate) fn spawn(launch: &Launch) -> Result<(Self, Pipes), Failure> {
        let filled = fill(launch)?;
        let mut child = command(&filled)?
            .spawn()
            .map_err(|error| Failure::new(format!("cannot start `{}`: {error}", filled.command)))?;
        let pipes = take_pipes(&mut child)
            .map_err(|error| Failure::new(format!("cannot use the child's pipes: {error}")))?;
        let stderr = Arc::new(Tail::default());
        let output = child.stderr.take();
        let drain = output.map(|output| tokio::spawn(drain(output, Arc::clone(&stderr))));
        let group = child
            .id()
            .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let mask = filled.mask;
        Ok((
            Self {
                child,
                group,
                stderr,
                drain,
                mask,
            },
            pipes,
        ))
    }

    pub(crate) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Why the child left, when its stdout closed.
    pub(crate) async fn autopsy(&mut self) -> Failure {
        let why = match timeout(EXIT_STATUS_WAIT, self.child.wait()).await {
            Ok(Ok(status)) => exit_text(status),
            Ok(Err(error)) => format!("its exit status is unknown: {error}"),
            Err(_) => "it closed its stdout while it still runs".to_owned(),
        };
        if let Some(drain) = &mut self.drain {
            let _ = timeout(STDERR_END_WAIT, drain).await;
            self.drain = None;
        }
        self.blame(Failure::new(why))
    }

    /// Adds the end of stderr, and takes secrets out.
    pub(crate) fn blame(&self, failure: Failure) -> Failure {
        let stderr = self
            .stderr
            .telling_line()
            .map(|line| self.mask.apply(&line));
        Failure {
            why: self.mask.apply(&failure.why),
            stderr,
            ..failure
        }
    }

    /// Ends the child and its whole group: end of input, then TERM, then KILL. The caller has
    /// closed the outbox.
    pub(crate) async fn stop(mut self) {
        if timeout(GRACE_AFTER_EOF, self.child.wait()).await.is_err() || self.group_lives() {
            self.signal(Signal::TERM);
            let _ = timeout(GRACE_AFTER_TERM, self.child.wait()).await;
        }
        if self.group_lives() {
            self.signal(Signal::KILL);
        }
        let _ = self.child.wait().await;
    }

    /// Whether anybody is left in the group, also when its leader is gone.
    fn group_lives(&self) -> bool {
        self.group
            .is_some_and(|group| test_kill_process_group(group).is_ok())
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group
            && let Err(error) = kill_process_group(group, signal)
        {
            debug!(%error, "the process group was gone");
        }
    }
}

/// A start that is given up half-way, or a runtime that ends, leaves no process either.
impl Drop for Running {
    fn drop(&mut self) {
        if self.group_lives() {
            self.signal(Signal::KILL);
        }
    }
}

fn fill(launch: &Launch) -> Result<Filled, Failure> {
    let Launch::Child {
        command,
        args,
        env: templates,
        cwd,
    } = launch
    else {
        return Err(Failure::new("a remote server has no process"));
    };
    let expand = |template: &Template| expand(template);
    let env: Vec<(String, String)> = templates
        .iter()
        .map(|(name, value)| Ok((name.clone(), expand(value)?)))
        .collect::<Result<_, Failure>>()?;
    let variables = [command]
        .into_iter()
        .chain(args)
        .flat_map(Template::variables);
    let secrets = variables.filter_map(|name| std::env::var(name).ok());
    let of_env = templates
        .iter()
        .zip(&env)
        .filter(|((name, template), _)| is_secret(name, template));
    let secrets = secrets.chain(of_env.map(|(_, (_, value))| value.clone()));
    Ok(Filled {
        command: expand(command)?,
        args: args.iter().map(expand).collect::<Result<_, _>>()?,
        folder: cwd.as_ref().map(expand).transpose()?.map(PathBuf::from),
        mask: Mask::new(secrets),
        env,
    })
}

/// Whether the value of a configured variable must not be shown: it comes from our environment,
/// or its name says so.
fn is_secret(name: &str, template: &Template) -> bool {
    let telling = ["TOKEN", "KEY", "SECRET", "PASS", "AUTH", "CRED"];
    let name = name.to_ascii_uppercase();
    template.variables().next().is_some() || telling.iter().any(|word| name.contains(word))
}

/// Fills a template from our own environment.
pub(crate) fn expand(template: &Template) -> Result<String, Failure> {
    let lookup = |name: &str| std::env::var(name).ok();
    template.expand(lookup).map_err(|unset| {
        let hint = format!(
            "set it, or write `${{{}:-default}}` in the configuration",
            unset.0
        );
        Failure::new(unset.to_string()).hint(hint)
    })
}

fn command(filled: &Filled) -> Result<Command, Failure> {
    let mut env = inherited();
    env.extend(filled.env.iter().cloned());
    let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let folder = filled.folder.clone().unwrap_or(here);
    if !folder.is_dir() {
        return Err(Failure::new(format!(
            "`cwd` {} is no folder",
            folder.display()
        )));
    }
    let path = env.get("PATH").map(String::as_str);
    let program = find_program(&filled.command, path, &folder)
        .map_err(|searched| not_found(&filled.command, &searched))?;
    let mut command = Command::new(program);
    command
        .args(&filled.args)
        .env_clear()
        .envs(env)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    Ok(command)
}

fn not_found(command: &str, searched: &[PathBuf]) -> Failure {
    let places: Vec<String> = searched
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    Failure::new(format!(
        "command `{command}` not found; searched {}",
        places.join(":")
    ))
    .hint(format!(
        "install `{command}`, or give its whole path in the configuration"
    ))
}

fn take_pipes(child: &mut Child) -> io::Result<Pipes> {
    let missing = || io::Error::from(io::ErrorKind::BrokenPipe);
    let stdin = child.stdin.take().ok_or_else(missing)?.into_owned_fd()?;
    let stdout = child.stdout.take().ok_or_else(missing)?.into_owned_fd()?;
    for pipe in [&stdin, &stdout] {
        let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE_BYTES);
    }
    Ok(Pipes {
        lines: LineReader::new(pipe::Receiver::from_owned_fd(stdout)?),
        outbox: Outbox::new(Sink::Pipe(pipe::Sender::from_owned_fd(stdin)?)),
    })
}

fn exit_text(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it exited with code {code}"),
        (None, Some(signal)) => format!("it was killed by signal {signal}"),
        (None, None) => "it ended".to_owned(),
    }
}

/// The last lines a child wrote to stderr.
#[derive(Debug, Default)]
struct Tail(Mutex<VecDeque<String>>);

impl Tail {
    fn push(&self, line: String) {
        let mut lines = self.lock();
        if lines.len() == STDERR_LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// The line that tells most: the last one that speaks of an error, else the last one. (A
    /// stack trace ends with the version of its interpreter.)
    fn telling_line(&self) -> Option<String> {
        let lines = self.lock();
        let speaks = |line: &&String| line.to_ascii_lowercase().contains("error");
        let filled = |line: &&String| !line.trim().is_empty();
        let line = lines.iter().rev().find(speaks);
        line.or_else(|| lines.iter().rev().find(filled))
            .map(|line| line.trim().to_owned())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<String>> {
        self.0
            .lock()
            .expect("no code panics while it holds the lines")
    }
}

/// Reads stderr to its end, whatever comes: a child whose stderr is full stands still.
async fn drain(output: ChildStderr, tail: Arc<Tail>) {
    let mut reader = BufReader::new(output);
    let mut line = Vec::new();
    while let Ok(chunk) = reader.fill_buf().await {
        if chunk.is_empty() {
            break;
        }
        let end = memchr::memchr(b'\n', chunk);
        let taken = end.map_or(chunk.len(), |at| at + 1);
        let room = STDERR_LINE_BYTES_MAX.saturating_sub(line.len());
        line.extend_from_slice(&chunk[..end.unwrap_or(chunk.len()).min(room)]);
        reader.consume(taken);
        if end.is_some() {
            tail.push(plain(&line));
            line.clear();
        }
    }
    if !line.is_empty() {
        tail.push(plain(&line));
    }
}

/// A line as text without colours and other control sequences.
fn plain(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            // CSI sequences end with a letter; other escapes are two characters long.
            if chars.next() == Some('[') {
                chars.by_ref().find(char::is_ascii_alphabetic);
            }
        } else if !c.is_control() || c == '\t' {
            plain.push(c);
        }
    }
    plain
}
