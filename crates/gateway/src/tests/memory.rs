//! Servers that live in memory: a list of tools, and a function for each.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use fleet::{
    About, Applied, CallError, Failure, Launch, Request, ServerSpec, ServerState, Sharing, Spoken,
    Survey, SurveyError, Template, Variables,
};
use futures::future::BoxFuture;
use jsonrpc::Json;
use parking_lot::Mutex;
use registry::ServerRules;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tool::{ServerName, Tool, ToolRef};

use crate::{Gateway, ServerSettings, Servers, Settings, survey};

/// What a tool does with the text of its arguments.
type Answer = Arc<dyn Fn(&str) -> Result<String, CallError> + Send + Sync>;

/// The servers, tool by tool.
#[derive(Default)]
pub(super) struct Memory {
    tools: BTreeMap<ServerName, Vec<(Tool, Answer)>>,
    called: Arc<Mutex<Vec<String>>>,
}

/// A gateway before them. Its folder goes with it.
pub(super) struct Scene {
    pub(super) gateway: Arc<Gateway>,
    called: Arc<Mutex<Vec<String>>>,
    _folder: tempfile::TempDir,
}

impl Memory {
    /// One more tool of a server, by its definition.
    pub(super) fn tool(
        self,
        server: &str,
        definition: &Value,
        answer: impl Fn(&str) -> Result<Value, CallError> + Send + Sync + 'static,
    ) -> Self {
        let answer = move |arguments: &str| answer(arguments).map(|value| value.to_string());
        self.with(server, definition, Arc::new(answer))
    }

    /// One more tool that always answers with this text.
    pub(super) fn raw(self, server: &str, definition: &Value, result: Arc<str>) -> Self {
        self.with(
            server,
            definition,
            Arc::new(move |_| Ok(result.to_string())),
        )
    }

    fn with(mut self, server: &str, definition: &Value, answer: Answer) -> Self {
        let tool = Tool::parse(&definition.to_string()).unwrap();
        let server: ServerName = server.parse().unwrap();
        self.tools.entry(server).or_default().push((tool, answer));
        self
    }

    /// A gateway that has asked them for their tools.
    pub(super) async fn open(self) -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = Settings::in_folder(folder.path().to_owned());
        settings.search.embeds = false;
        let names: Vec<ServerName> = self.tools.keys().cloned().collect();
        settings.servers = names.iter().map(settings_of).collect();
        let called = Arc::clone(&self.called);
        let gateway = Gateway::with_servers(settings, |_| Arc::new(self)).unwrap();
        survey::get_to_know(Arc::clone(&gateway), names).await;
        Scene {
            gateway,
            called,
            _folder: folder,
        }
    }
}

fn settings_of(name: &ServerName) -> ServerSettings {
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

impl Scene {
    /// The tools that were called, in order.
    pub(super) fn calls(&self) -> Vec<String> {
        self.called.lock().clone()
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").finish_non_exhaustive()
    }
}

impl Servers for Memory {
    fn call<'a>(
        &'a self,
        server: &'a ServerName,
        request: &'a Request,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Json, CallError>> {
        let name = request.param("name").unwrap().as_str();
        let name: String = serde_json::from_str(name).unwrap();
        let at = ToolRef::new(server.clone(), &name);
        self.called.lock().push(at.to_string());
        let mut tools = self.tools.get(server).into_iter().flatten();
        let (_, answer) = tools.find(|(tool, _)| tool.name() == name).unwrap();
        let answered = answer(request.param("arguments").unwrap().as_str());
        Box::pin(async move { Ok(jsonrpc::json(answered?).unwrap()) })
    }

    fn survey<'a>(&'a self, server: &'a ServerName) -> BoxFuture<'a, Result<Survey, SurveyError>> {
        let tools = self.tools[server].iter().map(|(tool, _)| tool.clone());
        let mut tools: Vec<Tool> = tools.collect();
        tools.sort_by(|a, b| a.name().cmp(b.name()));
        let about = About {
            name: None,
            version: None,
            instructions: None,
            spoken: Spoken::default(),
            offers_tools: true,
        };
        let survey = Survey {
            tools,
            dropped: Vec::new(),
            about,
            time_to_live: None,
        };
        Box::pin(async move { Ok(survey) })
    }

    fn survey_running<'a>(
        &'a self,
        _: &'a ServerName,
    ) -> BoxFuture<'a, Option<Result<Survey, SurveyError>>> {
        Box::pin(async { None })
    }

    fn changed(&self) -> BoxFuture<'_, ServerName> {
        Box::pin(std::future::pending())
    }

    fn look_again(&self, _: &ServerName, _: Duration) {}

    fn apply(&self, _: Vec<ServerSpec>) -> Applied {
        Applied::default()
    }

    fn start_eager(&self) {}

    fn admit_client(&self, _: u64, _: Arc<Variables>) -> Vec<ServerName> {
        Vec::new()
    }

    fn sharing(&self) -> Vec<Sharing> {
        Vec::new()
    }

    fn forget_client(&self, _: u64) {}

    fn tell_roots_changed(&self, _: u64) {}

    fn states(&self) -> Vec<ServerState> {
        Vec::new()
    }

    fn failures(&self) -> Vec<(ServerName, Failure)> {
        Vec::new()
    }

    fn is_down(&self, _: &ServerName) -> bool {
        false
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}
