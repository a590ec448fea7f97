//! An open connection to one server, of either kind.

use std::{sync::Arc, time::Duration};

use jsonrpc::Json;
use jsonrpc::mcp::Transport;
use oauth::Credential;
use processes::Pace;
use tokio::{
    sync::SetOnce,
    time::{sleep, timeout},
};

use crate::{
    About, Launch, Request, ServerSpec, Spoken, Surroundings, Template, Variables,
    activity::Activity,
    asking::Asking,
    changes::OnListChanged,
    channel::CallChannel,
    child::{Pipes, Running},
    error::{Denied, Failure, RequestError},
    limits::{EXIT_REASON_WAIT, ORPHAN_ANSWER_WAIT},
    login::{LoginPlace, denial},
    params::{write_list, write_params},
    request::Listeners,
    updates::Updates,
    wire::{
        HandshakeError, OwnMeta, PipeTransport, Remote, Service, Site, open_session, probe_session,
    },
};

/// A remote server that does not answer the newest revision for so long is asked in an older one.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// An open connection, and who uses it.
#[derive(Debug)]
pub(crate) struct Link {
    about: About,
    activity: Arc<Activity>,
    kind: Kind,
    /// The login of a remote server, where there may be one.
    credential: Option<Arc<Credential>>,
    /// It is sent headers of the configuration.
    has_headers: bool,
    /// Why it ended, once its keeper knows.
    end: SetOnce<Failure>,
}

#[derive(Debug)]
enum Kind {
    Child {
        channel: CallChannel,
        /// Members that the revision has each request carry in its `_meta`.
        own_meta: OwnMeta,
        service: Service,
    },
    Remote(Remote),
}

impl Link {
    fn new(about: About, kind: Kind) -> Self {
        let activity = Activity::new();
        Self {
            about,
            activity,
            kind,
            credential: None,
            has_headers: false,
            end: SetOnce::new(),
        }
    }

    pub(crate) fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }

    pub(crate) fn about(&self) -> &About {
        &self.about
    }

    pub(crate) async fn call(&self, request: &Request) -> Result<Json, RequestError> {
        match &self.kind {
            Kind::Child {
                channel, own_meta, ..
            } => {
                let own_meta = own_meta.of_call(request);
                let params = |id| write_params(request, &own_meta, id);
                let listeners = Listeners::of(request);
                Ok(channel.request(request.method, params, listeners).await?)
            }
            Kind::Remote(remote) => remote.call(request).await,
        }
    }

    /// A request of our own, of which nobody else hears.
    pub(crate) async fn ask(&self, request: &Request) -> Result<Json, RequestError> {
        match &self.kind {
            Kind::Child {
                channel, own_meta, ..
            } => {
                let own_meta = own_meta.of_survey();
                let params = |id| write_params(request, &own_meta, id);
                let listeners = Listeners::default();
                Ok(channel.request(request.method, params, listeners).await?)
            }
            Kind::Remote(remote) => remote.ask(request).await,
        }
    }

    /// The subscribers to changes of resources.
    pub(crate) fn updates(&self) -> &Updates {
        match &self.kind {
            Kind::Child { channel, .. } => channel.updates(),
            Kind::Remote(remote) => remote.updates(),
        }
    }

    /// One page of a list, such as `tools/list`.
    pub(crate) async fn list(
        &self,
        method: &'static str,
        cursor: Option<&str>,
    ) -> Result<Json, RequestError> {
        match &self.kind {
            Kind::Child {
                channel, own_meta, ..
            } => {
                let own_meta = own_meta.of_survey();
                let params = |_| write_list(cursor, &own_meta);
                let listeners = Listeners::default();
                Ok(channel.request(method, params, listeners).await?)
            }
            Kind::Remote(remote) => remote.list(method, cursor).await,
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        match &self.kind {
            Kind::Child { channel, .. } => channel.has_ended(),
            Kind::Remote(remote) => remote.has_ended(),
        }
    }

    pub(crate) async fn ended(&self) {
        match &self.kind {
            Kind::Child { channel, .. } => channel.ended().await,
            Kind::Remote(remote) => remote.ended().await,
        }
    }

    /// Tells the server that its roots may be others now.
    pub(crate) async fn tell_roots_changed(&self) {
        match &self.kind {
            Kind::Child { service, .. } => service.tell_roots_changed().await,
            Kind::Remote(remote) => remote.tell_roots_changed().await,
        }
    }

    /// Returns true if it is certain that the server, which has ended, did not read the request that
    /// was sent after this many bytes.
    pub(crate) fn is_unread(&self, before: u64) -> bool {
        match &self.kind {
            Kind::Child { channel, .. } => channel.is_unread(before),
            Kind::Remote(_) => false,
        }
    }

    /// Returns true if the server sends any answer within this time, including an error.
    pub(crate) async fn answers_within(&self, wait: Duration) -> bool {
        let ping = Request::new("ping", Vec::new());
        let answered = timeout(wait, self.ask(&ping)).await;
        matches!(answered, Ok(Ok(_) | Err(RequestError::Protocol(_))))
    }

    /// Reports why the connection ended to the callers that wait for its end.
    pub(crate) fn tell_end(&self, failure: Failure) {
        let _ = self.end.set(failure);
    }

    /// Why the server that was ready a moment ago is gone.
    pub(crate) async fn why_ended(&self) -> Failure {
        match timeout(EXIT_REASON_WAIT, self.end.wait()).await {
            Ok(failure) => failure.clone(),
            Err(_) => Failure::new("it ended under the call"),
        }
    }

    /// Why a connection without a process ended by itself.
    pub(crate) fn exit_reason(&self) -> Failure {
        match &self.kind {
            Kind::Child { .. } => Failure::new("the connection ended"),
            Kind::Remote(remote) => match remote.denied() {
                Some(denied) => self.denial(denied),
                None => Failure::new("the connection ended"),
            },
        }
    }

    /// The failure of a request that the server denied.
    pub(crate) fn denial(&self, denied: Denied) -> Failure {
        denial(denied, self.credential.as_ref(), self.has_headers)
    }

    /// Ends the requests under way: nobody is left to answer them, whoever holds the pipes.
    pub(crate) fn give_up(&self) {
        if let Kind::Child { channel, .. } = &self.kind {
            channel.give_up();
        }
    }

    /// Asks the server to end: closes a child's stdin, ends a remote session.
    pub(crate) async fn close(&self) {
        match &self.kind {
            Kind::Child { channel, .. } => channel.close(),
            Kind::Remote(remote) => remote.close().await,
        }
    }
}

/// All that it takes to open a connection to one server.
#[derive(Clone, Copy)]
pub(crate) struct Opening<'a> {
    pub(crate) spec: &'a ServerSpec,
    pub(crate) variables: &'a Variables,
    pub(crate) surroundings: &'a Arc<Surroundings>,
    pub(crate) on_list_changed: &'a OnListChanged,
    pub(crate) asking: &'a Arc<Asking>,
}

impl Opening<'_> {
    /// Starts or connects a server; with it comes its process, if it has one. What it spoke last is
    /// a guess: where the server refuses it, the alternative is tried on a fresh connection. One of
    /// which nothing is known is asked in the newest revision first.
    pub(crate) async fn open(
        self,
        guess: Option<&Spoken>,
    ) -> Result<(Link, Option<Running>), Failure> {
        let (alternative, refused) = match (guess, self.open_with(guess.cloned()).await) {
            (_, Ok(open)) => return Ok(open),
            (_, Err(OpenError::Failed(failure) | OpenError::Silent(failure)))
            | (Some(_), Err(OpenError::Unanswered(failure))) => return Err(failure),
            (Some(guess), Err(OpenError::WrongRevision(why))) => (guess.alternative(), Some(why)),
            (None, Err(_)) => (Spoken::default(), None),
        };
        let opened = self.open_with(Some(alternative)).await;
        opened.map_err(|error| match (error, refused) {
            (OpenError::WrongRevision(_), Some(first)) => {
                OpenError::WrongRevision(first).into_failure()
            }
            (error, _) => error.into_failure(),
        })
    }

    /// The same in this revision and no other.
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
        }
    }

    async fn open_remote(
        self,
        url: &Template,
        headers: &[(String, Template)],
        guess: Option<Spoken>,
    ) -> Result<Link, OpenError> {
        let Self {
            spec, variables, ..
        } = self;
        let credential = find_credential(spec, variables, self.surroundings)?;
        let site = Site::read(url, headers, variables).map_err(Failure::new)?;
        let patience = match guess {
            Some(_) => spec.start_timeout,
            None => spec.start_timeout.min(PROBE_TIMEOUT),
        };
        let guess = guess.unwrap_or_else(|| Spoken::default().alternative());
        let site = site.with_login(credential.clone());
        let on_list_changed = Arc::clone(self.on_list_changed);
        let opening = Remote::open(site, &guess, on_list_changed, self.asking);
        let opened = timeout(patience, opening).await;
        let opened = opened.map_err(|_| OpenError::Unanswered(describe_silence(spec, None)))?;
        let (remote, about) = opened.map_err(|error| match error {
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
            ..Link::new(about, Kind::Remote(remote))
        })
    }

    async fn open_child(self, spoken: Option<&Spoken>) -> Result<(Link, Running), OpenError> {
        let Self { spec, asking, .. } = self;
        let (mut running, pipes) = Running::spawn(spec, self.variables, self.surroundings)?;
        let Pipes { lines, outbox } = pipes;
        let on_changed = Arc::clone(self.on_list_changed);
        let (transport, feed) = PipeTransport::new(outbox.clone(), Arc::clone(&on_changed));
        let channel = CallChannel::start(lines, outbox, feed, running.mask(), Arc::clone(asking));
        let opening = async {
            match spoken {
                Some(spoken) => open_session(transport, spoken, on_changed, &asking.roots).await,
                None => probe_session(transport, on_changed, &asking.roots).await,
            }
        };
        let opened = tokio::select! {
            opened = timeout(spec.start_timeout, opening) => opened,
            () = be_lost(&mut running) => Ok(Err(HandshakeError::Closed)),
        };
        let error = match opened {
            Ok(Ok((service, about))) => {
                let own_meta = OwnMeta::of(&about.spoken.revision);
                let kind = Kind::Child {
                    channel,
                    own_meta,
                    service,
                };
                return Ok((Link::new(about, kind), running));
            }
            Ok(Err(HandshakeError::WrongRevision(why))) => OpenError::WrongRevision(why),
            Ok(Err(HandshakeError::Closed)) => {
                let failure = running.exit_reason().await;
                OpenError::Unanswered(suspect_no_server(failure, channel.stray_line()))
            }
            Ok(Err(
                HandshakeError::Denied(Denied { why, .. })
                | HandshakeError::Unreached { why, .. }
                | HandshakeError::Other(why),
            )) => OpenError::Unanswered(running.with_stderr(Failure::new(why))),
            Err(_) => {
                let silence = describe_silence(spec, channel.stray_line());
                OpenError::Silent(suspect_http(running.with_stderr(silence)))
            }
        };
        channel.close();
        running.stop(Pace::Hurried).await;
        Err(error)
    }
}

/// Returns when the child has failed and what it wrote before was read, whoever holds its pipes. A
/// child that exits without an error may have launched the server.
async fn be_lost(running: &mut Running) {
    running.fail().await;
    sleep(ORPHAN_ANSWER_WAIT).await;
}

fn find_credential(
    spec: &ServerSpec,
    variables: &Variables,
    surroundings: &Surroundings,
) -> Result<Option<Arc<Credential>>, Failure> {
    let Some(files) = &surroundings.private else {
        return Ok(None);
    };
    let place = LoginPlace::of(spec, variables, surroundings.secrets.as_ref(), files)?;
    Ok(place.map(LoginPlace::credential))
}

/// Why a connection was not opened.
#[derive(Debug)]
pub(crate) enum OpenError {
    WrongRevision(String),
    /// It did not go on with the handshake, which another one may have done.
    Unanswered(Failure),
    /// A child that runs said nothing in all its time; another handshake would take as long.
    Silent(Failure),
    Failed(Failure),
}

impl OpenError {
    pub(crate) fn into_failure(self) -> Failure {
        match self {
            Self::WrongRevision(why) => {
                Failure::new(format!("it refused both ways to open a connection: {why}"))
            }
            Self::Unanswered(failure) | Self::Silent(failure) | Self::Failed(failure) => failure,
        }
    }
}

impl From<Failure> for OpenError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Host and port of an address in which no secret is.
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
            Launch::Child { .. } => format!(
                "is it an MCP server that speaks over stdin and stdout? If it is only slow, raise \
                 `servers.{}.start_timeout_s`",
                spec.name
            ),
            Launch::Remote { .. } => format!("raise `servers.{}.start_timeout_s`", spec.name),
        }),
    }
}

/// A program that serves HTTP says mostly where.
fn suspect_http(failure: Failure) -> Failure {
    let told = failure
        .stderr
        .as_deref()
        .unwrap_or_default()
        .to_ascii_lowercase();
    let serves = ["http://", "listening on", "running on port"];
    if serves.iter().any(|words| told.contains(words)) {
        failure.hint(SERVES_HTTP)
    } else {
        failure
    }
}

const SERVES_HTTP: &str = "it seems to serve HTTP: have it speak over stdin and stdout (often \
                           `--stdio` in `args`), or connect to it by `url`";

/// A program that writes to stdout what is no message, or ends at once and has nothing to say,
/// may be no server at all.
fn suspect_no_server(failure: Failure, stray: Option<String>) -> Failure {
    match stray {
        Some(line) => add_stray(failure, &line),
        None if failure.stderr.is_some() || failure.hint.is_some() => failure,
        None => failure.hint(NO_SERVER),
    }
}

fn add_stray(failure: Failure, line: &str) -> Failure {
    let why = format!("{}; no message, but on stdout: `{line}`", failure.why);
    let hint = failure.hint.or_else(|| Some(NO_SERVER.to_owned()));
    Failure {
        why,
        hint,
        ..failure
    }
}

const NO_SERVER: &str =
    "is it an MCP server that speaks over stdin and stdout? Look at `command` and `args`";
