//! In-memory servers: a list of tools, and a function for each.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::Path,
    sync::{Arc, Weak},
    time::{Duration, SystemTime},
};

use fleet::{
    Applied, Asks, Awaited, CallError, CallServers, Failure, Launch, Lifecycle, ListServers,
    LoginNeeded, QuestionKind, Request, ServerInfo, ServerQuestion, ServerSpec, ServerState,
    Servers, Sharing, Spoken, Subscriber, Survey, SurveyError, Template, UpdateSink, Variables,
    WatchGuard,
};
use futures::{
    FutureExt as _,
    future::{BoxFuture, ready},
};
use jsonrpc::Json;
use oauth::RecordFile;
use parking_lot::Mutex;
use registry::ServerRules;
use secrets::PrivateFiles;
use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tool::{Capability, ClientId, ItemKind, Offer, OfferItem, ServerName, Tool, ToolRef};

use crate::{Gateway, ServerSettings, Settings, policy::ClientPolicies, survey};

/// The function of a tool: from the text of its arguments to its result.
type ToolFunction = Arc<dyn Fn(&str) -> Result<String, CallError> + Send + Sync>;

/// The servers, tool by tool.
#[derive(Default)]
pub(super) struct Memory {
    tools: BTreeMap<ServerName, Vec<(Tool, ToolFunction)>>,
    instructions: BTreeMap<ServerName, String>,
    /// The offers of the servers, which may change after a survey.
    offers: Offers,
    /// The response to the `params` of a method, by server and method.
    answers: BTreeMap<(ServerName, String), Say>,
    changes: Arc<(Mutex<Vec<ServerName>>, Notify)>,
    watches: Watches,
    called: Arc<Mutex<Vec<String>>>,
    looks: watch::Sender<Vec<Duration>>,
    waiting: Waiting,
    /// Servers that refuse everything until a user has logged in.
    locked: Mutex<BTreeSet<ServerName>>,
    /// Servers that lack a variable until a client has it.
    incomplete: Mutex<BTreeSet<ServerName>>,
    /// True if searches use embeddings.
    embeds: bool,
}

/// The subscriptions by server and URI; one ends when its guard is dropped.
type Watches = Arc<Mutex<Vec<(String, Weak<()>, UpdateSink)>>>;

/// The response of a server to the `params` of a request.
type Say = Arc<dyn Fn(&Value) -> Result<Value, CallError> + Send + Sync>;

/// Runs while the next request waits for its start.
type Waiting = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

type Offers = Arc<Mutex<BTreeMap<ServerName, Offer>>>;

/// A gateway before them. Its folder goes with it.
pub(super) struct TestGateway {
    pub(super) gateway: Arc<Gateway>,
    called: Arc<Mutex<Vec<String>>>,
    offers: Offers,
    changes: Arc<(Mutex<Vec<ServerName>>, Notify)>,
    watches: Watches,
    /// The delays until servers are surveyed again.
    pub(super) looks: watch::Sender<Vec<Duration>>,
    /// Runs while the next request waits for its start.
    pub(super) waiting: Waiting,
    _folder: tempfile::TempDir,
}

impl Memory {
    /// Adds a tool of a server by its definition.
    pub(super) fn tool(
        self,
        server: &str,
        definition: &Value,
        answer: impl Fn(&str) -> Result<Value, CallError> + Send + Sync + 'static,
    ) -> Self {
        let answer = move |arguments: &str| answer(arguments).map(|value| value.to_string());
        self.with(server, definition, Arc::new(answer))
    }

    /// Adds a tool that always returns this result.
    pub(super) fn raw(self, server: &str, definition: &Value, result: Arc<str>) -> Self {
        self.with(
            server,
            definition,
            Arc::new(move |_| Ok(result.to_string())),
        )
    }

    async fn wait_and_start(&self, request: &Request) -> Result<(), CallError> {
        let waiting = self.waiting.lock().take();
        if let Some(run) = waiting {
            run();
        }
        request.check_start().await.map_err(CallError::Refused)
    }

    fn answer(&self, server: &ServerName, request: &Request) -> Result<String, CallError> {
        if request.method != "tools/call" {
            let key = (server.clone(), request.method.to_owned());
            let params = request.params.iter();
            let params = params.map(|(key, value)| {
                (
                    key.to_string(),
                    serde_json::from_str(value.as_str()).unwrap(),
                )
            });
            let params: Value = params.collect::<serde_json::Map<_, _>>().into();
            self.called
                .lock()
                .push(format!("{server} {} {params}", request.method));
            return Ok(self.answers[&key](&params)?.to_string());
        }
        let name = request.param("name").unwrap().as_str();
        let name: String = serde_json::from_str(name).unwrap();
        let at = ToolRef::new(server.clone(), &name);
        self.called.lock().push(at.to_string());
        let mut tools = self.tools.get(server).into_iter().flatten();
        let (_, answer) = tools.find(|(tool, _)| tool.name() == name).unwrap();
        answer(request.param("arguments").unwrap().as_str())
    }

    fn with(mut self, server: &str, definition: &Value, answer: ToolFunction) -> Self {
        let tool = Tool::parse(&definition.to_string()).unwrap();
        let server: ServerName = server.parse().unwrap();
        self.tools.entry(server).or_default().push((tool, answer));
        self
    }

    /// Adds a prompt, resource or template of a server.
    pub(super) fn item(self, server: &str, kind: ItemKind, item: &Value) -> Self {
        let server: ServerName = server.parse().unwrap();
        let mut offers = self.offers.lock();
        add_item(offers.entry(server).or_default(), kind, item);
        drop(offers);
        self
    }

    /// Sets the instructions that a server sends to its client when a connection is opened.
    pub(super) fn instructs(mut self, server: &str, text: &str) -> Self {
        self.instructions
            .insert(server.parse().unwrap(), text.to_owned());
        self
    }

    /// Makes searches use embeddings, once tools have them.
    pub(super) fn embeds(mut self) -> Self {
        self.embeds = true;
        self
    }

    /// Makes the server lack a variable until a client has it.
    pub(super) fn incomplete(self, server: &str) -> Self {
        self.incomplete.lock().insert(server.parse().unwrap());
        self
    }

    /// Makes the server refuse everything until a user has logged in.
    pub(super) fn locked(self, server: &str) -> Self {
        self.locked.lock().insert(server.parse().unwrap());
        self
    }

    /// Adds a capability to the server, such as completion or subscriptions.
    pub(super) fn can(self, server: &str, capability: Capability) -> Self {
        let server: ServerName = server.parse().unwrap();
        let mut offers = self.offers.lock();
        let offer = offers.entry(server).or_default();
        offer.capabilities.insert(capability);
        drop(offers);
        self
    }

    /// Sets the response of a server to requests of this method, from their `params`.
    pub(super) fn says(
        mut self,
        server: &str,
        method: &str,
        say: impl Fn(&Value) -> Result<Value, CallError> + Send + Sync + 'static,
    ) -> Self {
        let key = (server.parse().unwrap(), method.to_owned());
        self.answers.insert(key, Arc::new(say));
        self
    }

    /// A gateway that has asked them for their tools.
    pub(super) async fn open(self) -> TestGateway {
        self.open_with(ClientPolicies::default()).await
    }

    pub(super) async fn open_with(mut self, clients: ClientPolicies) -> TestGateway {
        for server in self.offers.lock().keys() {
            self.tools.entry(server.clone()).or_default();
        }
        let folder = tempfile::tempdir().unwrap();
        let mut settings = Settings::in_folder(folder.path().to_owned());
        settings.search.embeds = self.embeds;
        settings.clients = clients;
        let names: Vec<ServerName> = self.tools.keys().cloned().collect();
        settings.servers = names.iter().map(settings_of).collect();
        let called = Arc::clone(&self.called);
        let (offers, changes) = (Arc::clone(&self.offers), Arc::clone(&self.changes));
        let (watches, looks) = (Arc::clone(&self.watches), self.looks.clone());
        let waiting = Arc::clone(&self.waiting);
        let gateway = Gateway::with_servers(settings, |_| Arc::new(self)).unwrap();
        survey::get_to_know(Arc::clone(&gateway.catalog), names).await;
        TestGateway {
            gateway,
            called,
            offers,
            changes,
            watches,
            looks,
            waiting,
            _folder: folder,
        }
    }
}

/// Settings of a server that cannot be started.
pub(crate) fn settings_of(name: &ServerName) -> ServerSettings {
    let launch = Launch::Child {
        command: Template::parse("never-started").unwrap(),
        args: Vec::new(),
        env: Vec::new(),
        cwd: None,
    };
    ServerSettings {
        notes: None,
        spec: ServerSpec::new(name.clone(), launch),
        enabled: true,
        rules: ServerRules::plain(name.clone()),
        max_tokens: None,
        tools: BTreeMap::new(),
    }
}

impl TestGateway {
    /// The tools that were called, in order.
    pub(super) fn calls(&self) -> Vec<String> {
        self.called.lock().clone()
    }
}

impl TestGateway {
    /// A resource of a server changed; answers how many heard of it.
    pub(super) fn update(&self, server: &str, uri: &str) -> usize {
        let key = format!("{server} {uri}");
        let watches = self.watches.lock();
        let hears = |it: &&(String, Weak<()>, UpdateSink)| it.0 == key && it.1.strong_count() > 0;
        let hear = watches.iter().filter(hears);
        hear.map(|(_, _, sink)| sink(uri)).count()
    }

    /// Adds an item to a server and notes the change.
    pub(super) fn add(&self, server: &str, kind: ItemKind, item: &Value) {
        let server: ServerName = server.parse().unwrap();
        add_item(
            self.offers.lock().entry(server.clone()).or_default(),
            kind,
            item,
        );
        self.note_change(server);
    }

    /// Notes that a server has to be surveyed.
    pub(super) fn note_change(&self, server: ServerName) {
        self.changes.0.lock().push(server);
        self.changes.1.notify_one();
    }
}

fn add_item(offer: &mut Offer, kind: ItemKind, item: &Value) {
    let item = OfferItem::parse(kind, &item.to_string()).unwrap();
    let (list, capability) = match kind {
        ItemKind::Prompt => (&mut offer.prompts, Capability::Prompts),
        ItemKind::Resource => (&mut offer.resources, Capability::Resources),
        ItemKind::Template => (&mut offer.templates, Capability::Resources),
        ItemKind::Skill => (&mut offer.skills, Capability::Skills),
        ItemKind::App => (&mut offer.apps, Capability::Resources),
    };
    list.push(item);
    offer.capabilities.insert(capability);
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").finish_non_exhaustive()
    }
}

impl CallServers for Memory {
    fn call<'a>(
        &'a self,
        server: &'a ServerName,
        request: &'a Request,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Json, CallError>> {
        Box::pin(async move {
            self.wait_and_start(request).await?;
            let answered = self.answer(server, request)?;
            Ok(jsonrpc::json(answered).unwrap())
        })
    }

    fn watch<'a>(
        &'a self,
        server: &'a ServerName,
        uri: &'a str,
        subscriber: Subscriber,
    ) -> BoxFuture<'a, Result<WatchGuard, CallError>> {
        Box::pin(async move {
            let request = Request {
                start_check: subscriber.start_check,
                ..Request::default()
            };
            self.wait_and_start(&request).await?;
            self.called.lock().push(format!("watch {server} {uri}"));
            let key = format!("{server} {uri}");
            let watch = Arc::new(());
            let held = Arc::downgrade(&watch);
            self.watches.lock().push((key, held, subscriber.sink));
            Ok(Box::new(watch) as WatchGuard)
        })
    }

    fn log_in<'a>(
        &'a self,
        server: &'a ServerName,
        _: Option<&'a ClientId>,
        asks: &'a Arc<dyn Asks>,
    ) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let params = r#"{"mode":"url","message":"log in","url":"http://127.0.0.1/"}"#;
            let question = ServerQuestion {
                kind: QuestionKind::Elicitation,
                params: jsonrpc::json(params.to_owned()).unwrap(),
            };
            let answer = asks.ask(question).await;
            let is_done = matches!(&answer, fleet::ClientAnswer::Result(it) if it.as_str().contains("accept"));
            is_done && self.locked.lock().remove(server)
        })
    }
}

impl ListServers for Memory {
    fn survey<'a>(&'a self, server: &'a ServerName) -> BoxFuture<'a, Result<Survey, SurveyError>> {
        if self.incomplete.lock().contains(server) {
            let failure = Failure::new("`TOKEN` is not set");
            return Box::pin(async { Err(SurveyError { failure }) });
        }
        if self.locked.lock().contains(server) {
            let needed = LoginNeeded {
                again: false,
                scopes: Vec::new(),
                address: None,
            };
            let files = PrivateFiles::plain(Path::new("nowhere"));
            let record = RecordFile::of(&files, server.as_str(), "https://guarded.test/mcp");
            let mut failure = Failure::new("HTTP 401 Unauthorized");
            failure.hint = Some(format!("proxy login {server}"));
            failure.awaited = Some(Box::new(Awaited::login(record, None, needed)));
            return Box::pin(async { Err(SurveyError { failure }) });
        }
        let tools = self.tools[server].iter().map(|(tool, _)| tool.clone());
        let mut tools: Vec<Tool> = tools.collect();
        tools.sort_by(|a, b| a.name().cmp(b.name()));
        let about = ServerInfo {
            name: None,
            version: None,
            instructions: self.instructions.get(server).cloned(),
            spoken: Spoken::default(),
            offers_tools: true,
            capabilities: BTreeSet::new(),
        };
        let survey = Survey {
            tools,
            offer: self.offers.lock().get(server).cloned().unwrap_or_default(),
            dropped: Vec::new(),
            about,
            time_to_live: None,
            asking_calls: Vec::new(),
            asked_at: SystemTime::now(),
        };
        Box::pin(async move { Ok(survey) })
    }

    fn survey_running<'a>(
        &'a self,
        server: &'a ServerName,
    ) -> BoxFuture<'a, Option<Result<Survey, SurveyError>>> {
        let key = (server.clone(), "tools/list".to_owned());
        let refused = self
            .answers
            .get(&key)
            .and_then(|say| say(&Value::Null).err());
        Box::pin(async move {
            Some(match refused {
                Some(error) => Err(SurveyError {
                    failure: Failure::new(error.to_string()),
                }),
                None => self.survey(server).await,
            })
        })
    }

    fn changed(&self) -> BoxFuture<'_, ServerName> {
        Box::pin(async {
            loop {
                if let Some(server) = self.changes.0.lock().pop() {
                    return server;
                }
                self.changes.1.notified().await;
            }
        })
    }

    fn look_again(&self, _: &ServerName, after: Duration) {
        self.looks.send_modify(|looks| looks.push(after));
    }

    fn sharing(&self) -> Vec<Sharing> {
        Vec::new()
    }

    fn quick_states(&self) -> Vec<ServerState> {
        self.states()
    }

    fn failures(&self) -> Vec<(ServerName, Failure)> {
        Vec::new()
    }

    fn is_down(&self, _: &ServerName) -> bool {
        false
    }

    fn needs_login(&self, _: &ServerName) -> bool {
        false
    }

    fn states(&self) -> Vec<ServerState> {
        Vec::new()
    }

    fn list_mended(&self) -> Vec<ServerName> {
        Vec::new()
    }
}

impl Lifecycle for Memory {
    fn apply(&self, _: Vec<ServerSpec>) -> Applied {
        Applied::default()
    }

    fn restart<'a>(
        &'a self,
        server: &'a ServerName,
        _: bool,
    ) -> BoxFuture<'a, Result<Duration, CallError>> {
        let known = self.tools.contains_key(server);
        let missing = || CallError::UnknownServer(server.clone());
        let restarted = known.then_some(Duration::ZERO).ok_or_else(missing);
        ready(restarted).boxed()
    }

    fn start_eager(&self) {}

    /// Servers that lack a variable have it from now on.
    fn admit_client(&self, _: u64, _: Arc<Variables>) -> Vec<ServerName> {
        std::mem::take(&mut *self.incomplete.lock())
            .into_iter()
            .collect()
    }

    fn forget_client(&self, _: u64) {}

    fn tell_roots_changed(&self, _: u64) {}

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

impl Servers for Memory {}
