//! One child process: its start, the end of its stderr, and its certain death.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    sync::Arc,
};

use files::variable_name;
use jsonrpc::{LineReader, Outbox, Sink};
use printable::Redactor;
use processes::{Pace, Spawner, Tree, ending_signal};
use secrets::{PrivateFiles, Resolver};
use tokio::{process::Command, task::JoinHandle, time::timeout};

mod isolation;
mod missing;
mod output;
mod stderr;
mod telling;
#[cfg(test)]
#[cfg(unix)]
mod tests;

pub(crate) use self::output::Finished;
use self::{
    isolation::{Container, Limits, find_engine},
    missing::{describe_not_found, describe_refused_start},
    stderr::{StderrSinks, Tail, drain},
};
use crate::{
    KnownCallers, Launch, ServerSpec, Template, Variables,
    environment::{expand, find_program, inherit, is_harmless, is_named},
    error::Failure,
    limits::{EXIT_STATUS_WAIT, PIPE_BYTES, STDERR_END_WAIT},
    log::{Log, log_path},
    proxies,
    taken::templates,
};

/// The things around the fleet that children need.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// Starts them, so that they end with us.
    pub spawner: Arc<Spawner>,
    /// The folder in which the stderr of each server is kept, if it is.
    pub log_folder: Option<PathBuf>,
    /// The folder below which logins are kept, if they are.
    pub private: Option<PrivateFiles>,
    /// Reads the secrets that a specification names.
    pub secrets: Option<Arc<Resolver>>,
    /// The callers over HTTP that were seen.
    pub callers: Arc<KnownCallers>,
}

/// A running child, and all it started.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) tree: Tree,
    stderr: Arc<Tail>,
    drain: Option<JoinHandle<()>>,
    pub(crate) mask: Arc<Redactor>,
    container: Option<Container>,
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
    env: BTreeMap<String, String>,
    folder: Option<PathBuf>,
    mask: Redactor,
    limits: Option<Limits>,
    image: Option<String>,
    /// The variables that a container passes on.
    passed: Vec<String>,
}

impl Running {
    /// Starts the child of a [`Launch::Child`], filled in from these variables.
    pub(crate) fn spawn(
        spec: &ServerSpec,
        variables: &Variables,
        surroundings: &Arc<Surroundings>,
    ) -> Result<(Self, Pipes), Failure> {
        let mut running = Self::start(spec, variables, surroundings, true)?;
        let (output, input) = (running.tree.take_pipes(PIPE_BYTES))
            .map_err(|error| Failure::new(format!("cannot use the child's pipes: {error}")))?;
        let pipes = Pipes {
            lines: LineReader::new(output),
            outbox: Outbox::new(Sink::Pipe(input)),
        };
        Ok((running, pipes))
    }

    /// Does the same, and leaves its pipes to the caller. Without `has_stdin`, its stdin is empty.
    pub(crate) fn start(
        spec: &ServerSpec,
        variables: &Variables,
        surroundings: &Arc<Surroundings>,
        has_stdin: bool,
    ) -> Result<Self, Failure> {
        let filled = fill(spec, variables)?;
        let spawner = &surroundings.spawner;
        let container = filled.image.as_ref().map(|_| {
            let server = spec.name.as_str();
            Container::new(server, &filled.env, Arc::clone(spawner))
        });
        let container = container.transpose()?;
        let mut command = command(&filled, container.as_ref())?;
        if !has_stdin {
            // Programs such as `rg` read a pipe, and search the folder without one.
            command.stdin(Stdio::null());
        }
        let tree = spawner.spawn(command);
        let mut tree = tree.map_err(|error| describe_refused_start(&filled.command, &error))?;
        let (stderr, mask) = (Arc::<Tail>::default(), Arc::new(filled.mask));
        let log_folder = surroundings.log_folder.as_deref();
        let sinks = StderrSinks {
            tail: Arc::clone(&stderr),
            mask: Arc::clone(&mask),
            log: log_folder.map(|folder| Log::new(log_path(folder, &spec.name))),
        };
        let output = tree.take_stderr();
        Ok(Self {
            tree,
            stderr,
            drain: output.map(|output| tokio::spawn(drain(output, sinks))),
            mask,
            container,
        })
    }

    /// Returns when the child itself has left with an error.
    pub(crate) async fn fail(&mut self) {
        let has_failed = matches!(self.tree.wait_for_exit().await, Ok(status) if !status.success());
        if !has_failed {
            std::future::pending::<()>().await;
        }
    }

    /// Returns why the child exited, after its stdout was closed.
    pub(crate) async fn exit_reason(&mut self) -> Failure {
        let why = match timeout(EXIT_STATUS_WAIT, self.tree.wait_for_exit()).await {
            Ok(Ok(status)) => describe_exit(status),
            Ok(Err(error)) => format!("its exit status is unknown: {error}"),
            Err(_) => "it closed its stdout while it still runs".to_owned(),
        };
        let _ = timeout(STDERR_END_WAIT, self.end_of_stderr()).await;
        self.with_stderr(Failure::new(why))
    }

    /// Adds the explanation from stderr, and masks secrets.
    pub(crate) fn with_stderr(&self, failure: Failure) -> Failure {
        let (stderr, hint) = match self.stderr.find_telling() {
            Some(telling) => (Some(telling.line), telling.hint),
            None => (None, None),
        };
        Failure {
            why: self.mask.apply(&failure.why),
            stderr,
            hint: hint.or(failure.hint),
            ..failure
        }
    }

    /// Ends the child and all it started. The caller has closed the outbox. A stop that is dropped
    /// may be begun again at another pace.
    pub(crate) async fn stop(&mut self, pace: Pace) {
        self.tree.stop(pace).await;
        if let Some(container) = &self.container {
            container.remove().await;
            self.container = None;
        }
        let _ = timeout(STDERR_END_WAIT, self.end_of_stderr()).await;
    }

    async fn end_of_stderr(&mut self) {
        if let Some(drain) = &mut self.drain {
            let _ = drain.await;
            self.drain = None;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A process that moved to a session of its own may hold the other end for ever.
        if let Some(drain) = &self.drain {
            drain.abort();
        }
    }
}

/// The program that a server would be started by, with its variables filled in; of a remote one
/// there is none. Of commands, the first that is not found is the failure.
pub fn find_command(spec: &ServerSpec) -> Result<Option<PathBuf>, Failure> {
    match &spec.launch {
        Launch::Remote { .. } => Ok(None),
        Launch::Commands(set) => {
            let programs = set.programs(spec);
            programs
                .iter()
                .try_for_each(|it| find_command(it).map(drop))?;
            Ok(None)
        }
        Launch::Child { .. } => {
            let mut variables = Variables::of_process();
            // Nothing is read or run to find a program; a secret is seldom a part of its name.
            for (text, _) in templates(spec).flat_map(Template::references) {
                variables.set(text, text);
            }
            for path in spec.sandbox.iter().flat_map(|it| &it.write) {
                for (name, _) in path.needs() {
                    variables.set(name, "/");
                }
            }
            let filled = fill(spec, &variables)?;
            match filled.image {
                Some(_) => find_engine(filled.env.get("PATH").map(String::as_str)).map(Some),
                None => find(&filled, &folder_of(&filled)?).map(Some),
            }
        }
    }
}

/// The program that a server would be started by whose `command` is this word.
pub fn find_by_word(word: &str) -> Result<PathBuf, Failure> {
    let path = inherit(&[], &Variables::default()).remove("PATH");
    find_program(word, path.as_deref(), Path::new("/"))
        .map_err(|searched| describe_not_found(word, &searched))
}

fn fill(spec: &ServerSpec, variables: &Variables) -> Result<Filled, Failure> {
    let expand = |template: &Template| expand(template, variables);
    let Launch::Child {
        command,
        args,
        env: templates,
        cwd,
    } = &spec.launch
    else {
        return Err(Failure::new("a remote server has no process"));
    };
    let configured: Vec<(String, String)> = templates
        .iter()
        .map(|(name, value)| Ok((variable_name(name).into_owned(), expand(value)?)))
        .collect::<Result<_, Failure>>()?;
    let mut env = inherit(&spec.inherit_env, variables);
    let told = |name: &str| is_named(name, &spec.inherit_env) && is_telling(name);
    let inherited = env.iter().filter(|(name, _)| told(name));
    let inherited = inherited.map(|(_, value)| value.clone());
    let texts = [command].into_iter().chain(args).chain(cwd);
    let of_texts = texts.chain(templates.iter().map(|(_, value)| value));
    let secrets = of_texts
        .flat_map(|template| secrets_of(template, variables))
        .chain(inherited)
        .chain(secrets_configured(templates, &configured, variables))
        .chain(proxies::secrets());
    let args: Vec<String> = args.iter().map(&expand).collect::<Result<_, _>>()?;
    let mask = Redactor::new(secrets.chain(secrets_in(&args, &configured)));
    let mask = mask.with_patterns(spec.redaction.clone());
    let mut passed: Vec<String> = env.keys().cloned().collect();
    passed.retain(|name| is_named(name, &spec.inherit_env));
    passed.extend(configured.iter().map(|(name, _)| name.clone()));
    env.extend(configured);
    let limits = spec.sandbox.as_ref().map(|sandbox| {
        let write = sandbox.write.iter().map(&expand);
        Limits::new(sandbox.network, write.collect::<Result<_, _>>()?)
    });
    Ok(Filled {
        limits: limits.transpose()?,
        image: spec.image.as_ref().map(&expand).transpose()?,
        passed,
        command: expand(command)?,
        args,
        folder: cwd.as_ref().map(&expand).transpose()?.map(PathBuf::from),
        mask,
        env,
    })
}

/// The values that a text of the configuration takes from these variables, but for those that
/// everybody may see.
fn secrets_of(template: &Template, variables: &Variables) -> impl Iterator<Item = String> {
    let hidden = template.names().filter(|name| !is_harmless(name));
    hidden.filter_map(|name| variables.get(name).map(str::to_owned))
}

/// The secrets that stand in clear in arguments and variables: a password in an address, `--token=`.
fn secrets_in(args: &[String], env: &[(String, String)]) -> Vec<String> {
    let in_args = printable::find_secrets_in_arguments(args.iter().map(String::as_str));
    let in_args = args.iter().map(String::as_str).zip(in_args);
    let in_env = env
        .iter()
        .map(|(name, value)| (value.as_str(), printable::find_secrets(value, Some(name))));
    let found = in_args.chain(in_env);
    let texts =
        found.flat_map(|(text, found)| found.into_iter().map(|it| text[it.range].to_owned()));
    texts.collect()
}

/// Returns the whole values of variables that contain a secret, or whose name indicates one.
fn secrets_configured<'a>(
    templates: &'a [(String, Template)],
    configured: &'a [(String, String)],
    variables: &'a Variables,
) -> impl Iterator<Item = String> + 'a {
    let pairs = templates.iter().zip(configured);
    let secrets = pairs.filter(|((name, template), _)| {
        is_telling(name) || secrets_of(template, variables).next().is_some()
    });
    secrets.map(|(_, (_, value))| value.clone())
}

/// Returns true if the name of a variable indicates that its value must not be shown. False positives
/// are preferred to false negatives: `MONKEY` matches as well, `AUTH_MODE` does not.
fn is_telling(name: &str) -> bool {
    let telling = ["TOKEN", "KEY", "SECRET", "PASS", "AUTH", "CRED"];
    let name = name.to_ascii_uppercase();
    let is_plain = ["_MODE", "_TYPE", "_METHOD", "_SCHEME"];
    let is_plain = is_plain.iter().any(|end| name.ends_with(end));
    telling.iter().any(|word| name.contains(word)) && !is_plain
}

fn command(filled: &Filled, container: Option<&Container>) -> Result<Command, Failure> {
    let mut command = match (container, &filled.image) {
        (Some(container), Some(image)) => {
            let (limits, folder) = (filled.limits.as_ref(), filled.folder.as_deref());
            let mut command = container.run(limits, folder, &filled.passed);
            command.args([image, &filled.command]);
            command
        }
        _ => {
            let folder = folder_of(filled)?;
            let program = find(filled, &folder)?;
            let mut command = match &filled.limits {
                Some(limits) => limits.confine(&program)?,
                None => Command::new(program),
            };
            command.env_clear().envs(&filled.env).current_dir(folder);
            command
        }
    };
    command
        .args(&filled.args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Ok(command)
}

/// The folder that it works in, unless that is one of a container.
fn folder_of(filled: &Filled) -> Result<PathBuf, Failure> {
    let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let folder = filled.folder.clone().unwrap_or(here);
    if folder.is_dir() {
        return Ok(folder);
    }
    let why = format!("`cwd` {} is no folder", folder.display());
    Err(Failure::new(why))
}

fn find(filled: &Filled, folder: &Path) -> Result<PathBuf, Failure> {
    let path = filled.env.get("PATH").map(String::as_str);
    find_program(&filled.command, path, folder)
        .map_err(|searched| describe_not_found(&filled.command, &searched))
}

fn describe_exit(status: ExitStatus) -> String {
    match (status.code(), ending_signal(status)) {
        (Some(code), _) => format!("it exited with code {code}"),
        (None, Some(signal)) => format!("it was killed by signal {signal}"),
        (None, None) => "it ended".to_owned(),
    }
}
