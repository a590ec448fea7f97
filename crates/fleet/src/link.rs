//! An open connection to one server, and the ways to open one.

use std::{ops::Deref, sync::Arc, time::Duration};

use jsonrpc::mcp::{Revision, Transport};
use oauth::Credential;
use processes::Pace;
use tokio::{
    sync::SetOnce,
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    CommandSet, Launch, Request, ServerInfo, ServerSpec, Spoken, Surroundings, Template, Variables,
    activity::Activity,
    asking::Asking,
    channel::CallChannel,
    child::{Pipes, Running},
    command_runner::CommandRunner,
    connection::Connection,
    error::{Denied, Failure, RequestError},
    limits::{EXIT_REASON_WAIT, ORPHAN_ANSWER_WAIT},
    login::{LoginPlace, denial},
    updates::Updates,
    wire::{
        AddressSource, HandshakeError, LineConnection, PipeTransport, Site, open_remote,
        open_session, probe_session,
    },
};

/// The time for a remote server to respond in the newest revision, before an older one is tried.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// An open connection to one server, and its users.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) about: ServerInfo,
    pub(crate) activity: Arc<Activity>,
    connection: Box<dyn Connection>,
    /// The login of a remote server, where there may be one.
    credential: Option<Arc<Credential>>,
    has_headers: bool,
    /// Why it ended, once its keeper knows.
    end: SetOnce<Failure>,
}

impl Deref for Link {
    type Target = dyn Connection;

    fn deref(&self) -> &Self::Target {
        &*self.connection
    }
}

impl Link {
    fn new(about: ServerInfo, connection: Box<dyn Connection>) -> Self {
        Self {
            about: about.masked(connection.redactor()).bounded(),
            activity: Activity::new(),
            connection,
            credential: None,
            has_headers: false,
            end: SetOnce::new(),
        }
    }

    /// Returns true if the server sends any response within this time, including an error.
    pub(crate) async fn answers_within(&self, wait: Duration) -> bool {
        let ping = Request::new("ping", Vec::new());
        let answered = timeout(wait, self.ask(&ping)).await;
        matches!(answered, Ok(Ok(_) | Err(RequestError::Protocol(_))))
    }

    /// Reports why the connection ended to the callers that wait for its end.
    pub(crate) fn set_end(&self, failure: Failure) {
        let _ = self.end.set(failure);
    }

    /// Waits for the reason why the server that was ready a moment ago has ended.
    pub(crate) async fn why_ended(&self) -> Failure {
        match timeout(EXIT_REASON_WAIT, self.end.wait()).await {
            Ok(failure) => failure.clone(),
            Err(_) => Failure::new("it ended under the call"),
        }
    }

    /// Returns why a connection without a process ended by itself.
    pub(crate) fn exit_reason(&self) -> Failure {
        match self.denied() {
            Some(denied) => self.denial(denied),
            None => Failure::new("the connection ended"),
        }
    }

    pub(crate) fn denial(&self, denied: Denied) -> Failure {
        denial(denied, self.credential.as_ref(), self.has_headers)
    }
}

/// The inputs of a connection to one server.
#[derive(Clone, Copy)]
pub(crate) struct Opening<'a> {
    pub(crate) spec: &'a ServerSpec,
    pub(crate) variables: &'a Variables,
    pub(crate) surroundings: &'a Arc<Surroundings>,
    pub(crate) asking: &'a Arc<Asking>,
    /// True if a command had printed a secret of the server for an earlier connection.
    pub(crate) has_printed: bool,
}

impl Opening<'_> {
    /// Starts or connects a server. Returns its process as well, if it has one. The protocol of the last
    /// connection is the first guess. A server that refuses a revision is offered the other ones, each on a
    /// new connection ([`Spoken::attempts`]). Without a guess, the newest revision is tried first.
    pub(crate) async fn open(
        self,
        guess: Option<&Spoken>,
    ) -> Result<(Link, Option<Running>), Failure> {
        let mut refusal = None;
        for spoken in Spoken::attempts(guess) {
            let was_asked = spoken.is_none();
            let is_stateless = spoken.as_ref().is_some_and(|it| it.revision.is_stateless());
            match self.open_with(spoken).await {
                Ok(open) => return Ok(open),
                Err(OpenError::WrongRevision(_)) if was_asked => {}
                Err(OpenError::WrongRevision(why)) => {
                    refusal.get_or_insert(why);
                }
                // A server with a handshake may not respond to anything else.
                Err(OpenError::Unanswered(_)) if was_asked || is_stateless && refusal.is_some() => {
                }
                Err(error) => return Err(error.into_failure()),
            }
        }
        Err(OpenError::WrongRevision(refusal.unwrap_or_default()).into_failure())
    }

    /// Starts or connects a server in this revision only.
    pub(crate) async fn open_with(
        self,
        guess: Option<Spoken>,
    ) -> Result<(Link, Option<Running>), OpenError> {
        match &self.spec.launch {
            Launch::Child { .. } => {
                let spoken = guess.map(|guess| guess.over(Transport::Stdio));
                let (link, running) = self.open_child(spoken.as_ref()).await?;
                Ok((link, Some(running)))
            }
            Launch::Remote { url, headers } => {
                Ok((self.open_remote(url, headers, guess).await?, None))
            }
            Launch::Commands(set) => Ok((self.open_commands(set), None)),
        }
    }

    async fn open_remote(
        self,
        url: &Template,
        headers: &[(String, Template)],
        guess: Option<Spoken>,
    ) -> Result<Link, OpenError> {
        let (spec, variables) = (self.spec, self.variables);
        let place = LoginPlace::of(spec, variables, self.surroundings)?;
        let credential = place.map(LoginPlace::credential);
        let redaction = spec.redaction.clone();
        let source = AddressSource {
            url: url.clone(),
            headers: headers.to_vec(),
            variables: variables.clone(),
            resolver: self.surroundings.secrets.clone(),
            has_printed: self.has_printed,
        };
        let site = Site::read(source, redaction, credential.clone());
        let site = site.map_err(Failure::new)?;
        let patience = match guess {
            Some(_) => spec.start_timeout,
            None => spec.start_timeout.min(PROBE_TIMEOUT),
        };
        let guess = guess.unwrap_or(Spoken {
            revision: Revision::FIRST_STATELESS,
            transport: Transport::StreamableHttp,
        });
        let opened = timeout(patience, open_remote(site, &guess, self.asking)).await;
        let opened = opened.map_err(|_| OpenError::Unanswered(describe_silence(spec, None)))?;
        let (connection, about) = opened.map_err(|error| match error {
            HandshakeError::WrongRevision(why) => OpenError::WrongRevision(why),
            HandshakeError::Closed => {
                OpenError::Unanswered(Failure::new("it closed the connection"))
            }
            HandshakeError::Denied(denied) => {
                denial(denied, credential.as_ref(), !headers.is_empty()).into()
            }
            HandshakeError::Unreached { why, obstacle } => {
                let failure = Failure::unreachable(&why, obstacle, place_of(url).as_deref());
                OpenError::Unanswered(failure)
            }
            HandshakeError::Other(why) => OpenError::Unanswered(Failure::new(why)),
        })?;
        Ok(Link {
            has_headers: !headers.is_empty(),
            credential,
            ..Link::new(about, connection)
        })
    }

    fn open_commands(self, set: &CommandSet) -> Link {
        let about = ServerInfo {
            name: Some(self.spec.name.to_string()),
            offers_tools: true,
            ..ServerInfo::default()
        };
        let runner = CommandRunner {
            set: set.clone(),
            spec: self.spec.clone(),
            variables: self.variables.clone(),
            surroundings: Arc::clone(self.surroundings),
            updates: Updates::default(),
            closed: CancellationToken::new(),
            calls: TaskTracker::new(),
        };
        Link::new(about, Box::new(runner))
    }

    /// Starts a server. Starts it again if it responded to the probe for the newest revision too late: in
    /// that revision, which may take as long as any start.
    async fn open_child(self, spoken: Option<&Spoken>) -> Result<(Link, Running), OpenError> {
        let Self { spec, asking, .. } = self;
        let newest = Spoken {
            revision: Revision::FIRST_STATELESS,
            transport: Transport::Stdio,
        };
        let (mut running, pipes) = Running::spawn(spec, self.variables, self.surroundings)?;
        let Pipes { lines, outbox } = pipes;
        let (transport, feed) = PipeTransport::new(outbox.clone(), asking);
        let (pending, mask) = (Arc::default(), Arc::clone(&running.mask));
        let channel = CallChannel::start(pending, lines, outbox, feed, mask, asking);
        let opening = async {
            match spoken {
                Some(spoken) => open_session(transport, spoken, asking).await.map(Some),
                None => probe_session(transport, asking).await,
            }
        };
        let opened = tokio::select! {
            opened = timeout(spec.start_timeout, opening) => opened,
            () = wait_for_failure(&mut running) => Ok(Err(HandshakeError::Closed)),
        };
        let error = match opened {
            Ok(Ok(Some((service, about)))) => {
                let connection = LineConnection::new(channel, service, &about, None);
                return Ok((Link::new(about, Box::new(connection)), running));
            }
            Ok(Ok(None)) => None,
            Ok(Err(HandshakeError::WrongRevision(why))) => Some(OpenError::WrongRevision(why)),
            Ok(Err(HandshakeError::Closed)) => {
                let reason = running.exit_reason().await;
                let failure = suspect_no_server(reason, channel.stray_line());
                Some(OpenError::Unanswered(failure))
            }
            Ok(Err(
                HandshakeError::Denied(Denied { why, .. })
                | HandshakeError::Unreached { why, .. }
                | HandshakeError::Other(why),
            )) => {
                let failure = running.with_stderr(Failure::new(why));
                Some(OpenError::Unanswered(failure))
            }
            Err(_) => {
                let silence = describe_silence(spec, channel.stray_line());
                let failure = suspect_http(running.with_stderr(silence));
                Some(OpenError::Silent(failure))
            }
        };
        channel.outbox.close();
        running.stop(Pace::Hurried).await;
        match error {
            Some(error) => Err(error),
            None => Box::pin(self.open_child(Some(&newest))).await,
        }
    }
}

/// Waits until the child has failed and its last output was read, even if another process holds its
/// pipes. A child that exits without an error may have launched the server.
async fn wait_for_failure(running: &mut Running) {
    running.fail().await;
    sleep(ORPHAN_ANSWER_WAIT).await;
}

/// Why a connection was not opened.
#[derive(Debug)]
pub(crate) enum OpenError {
    WrongRevision(String),
    /// The server did not continue the handshake. It may do so in another revision.
    Unanswered(Failure),
    /// A running child sent nothing until the timeout. Another handshake would take as long.
    Silent(Failure),
    Failed(Failure),
}

impl OpenError {
    pub(crate) fn into_failure(self) -> Failure {
        match self {
            Self::WrongRevision(why) => Failure::new(format!(
                "it refused every protocol revision that `proxy` speaks: {why}"
            )),
            Self::Unanswered(failure) | Self::Silent(failure) | Self::Failed(failure) => failure,
        }
    }
}

impl From<Failure> for OpenError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Returns the host and port of an address that contains no secret.
fn place_of(url: &Template) -> Option<String> {
    let url = reqwest::Url::parse(&url.plain()?).ok()?;
    let port = url.port_or_known_default()?;
    Some(format!("{}:{port}", url.host_str()?))
}

fn describe_silence(spec: &ServerSpec, stray: Option<String>) -> Failure {
    let seconds = spec.start_timeout.as_secs();
    let failure = Failure::new(format!(
        "it did not answer the handshake within {seconds} s"
    ));
    match stray {
        Some(line) => add_stray(failure, &line),
        None => failure.hint(match spec.launch {
            Launch::Child { .. } | Launch::Commands(_) => format!(
                "is it an MCP server that speaks over stdin and stdout? If it is only slow, raise \
                 `servers.{}.start_timeout_s`",
                spec.name
            ),
            Launch::Remote { .. } => format!("raise `servers.{}.start_timeout_s`", spec.name),
        }),
    }
}

/// Adds a hint if the program seems to serve HTTP: such programs mostly print their address.
fn suspect_http(failure: Failure) -> Failure {
    let told = failure.stderr.as_deref().unwrap_or_default();
    let told = told.to_ascii_lowercase();
    let serves = ["http://", "listening on", "running on port"];
    if serves.iter().any(|words| told.contains(words)) {
        failure.hint(SERVES_HTTP)
    } else {
        failure
    }
}

const SERVES_HTTP: &str = "it seems to serve HTTP: have it speak over stdin and stdout (often \
                           `--stdio` in `args`), or connect to it by `url`";

/// Adds a hint if the program may not be a server: it printed something else than messages, or exited
/// without a word.
fn suspect_no_server(failure: Failure, stray: Option<String>) -> Failure {
    match stray {
        Some(line) => add_stray(failure, &line),
        None if failure.stderr.is_some() || failure.hint.is_some() => failure,
        None => failure.hint(NO_SERVER),
    }
}

fn add_stray(failure: Failure, line: &str) -> Failure {
    Failure {
        why: format!(
            "{}; stdout has a line that is not a message: `{line}`",
            failure.why
        ),
        hint: failure.hint.or_else(|| Some(NO_SERVER.to_owned())),
        ..failure
    }
}

const NO_SERVER: &str =
    "is it an MCP server that speaks over stdin and stdout? Look at `command` and `args`";
