//! All servers: one call, one survey, one stop.

use std::{collections::HashMap, sync::Arc, time::Duration};

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tool::{ServerName, Tool};

use crate::{
    About, CallError, Failure, Json, Ran, Request, ServerSpec, SurveyError,
    keeper::{Keeper, Server},
    limits::{PAGES_MAX, SURVEY_TIMEOUT, TOOLS_MAX},
    link::{Link, LinkError},
};

/// The servers of one configuration. A server is started by the first call or survey that wants
/// it, and lives until [`Fleet::stop`].
#[derive(Debug)]
pub struct Fleet {
    servers: HashMap<ServerName, Server>,
    stop: CancellationToken,
    keepers: TaskTracker,
}

/// What `tools/list` said just now.
#[derive(Debug)]
pub struct Survey {
    pub tools: Vec<Tool>,
    /// Why each element that is not in `tools` was left out.
    pub dropped: Vec<String>,
    pub about: About,
}

impl Fleet {
    /// Needs a runtime; starts no server.
    pub fn new(specs: Vec<ServerSpec>) -> Self {
        let stop = CancellationToken::new();
        let keepers = TaskTracker::new();
        let mut servers = HashMap::new();
        for spec in specs {
            let (keeper, server) = Keeper::new(spec, stop.clone());
            keepers.spawn(keeper.run());
            servers.insert(server.spec.name.clone(), server);
        }
        Self {
            servers,
            stop,
            keepers,
        }
    }

    /// Calls a tool and waits for its result: the `result` of the answer as the server wrote it.
    ///
    /// The limit runs from here, a start included. A call that is given up, cancelled, or whose
    /// future is dropped is cancelled at the server, and its late answer is dropped.
    pub async fn call(
        &self,
        server: &ServerName,
        request: &Request,
        limit: Option<Duration>,
        cancel: &CancellationToken,
    ) -> Result<Json, CallError> {
        let server = self.find(server)?;
        let limit = limit.unwrap_or(server.spec.call_timeout);
        let mut ran = Ran::No;
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(CallError::Cancelled),
            answer = call_ready(server, request, &mut ran) => answer,
            () = sleep_until(Instant::now() + limit) => {
                Err(CallError::TimedOut { server: server.spec.name.clone(), limit, ran: Ran::Maybe })
            }
        }
        .map_err(|error| mark_ran(error, ran))
    }

    /// Reads every page of a server's `tools/list`, starting the server if need be.
    pub async fn survey(&self, server: &ServerName) -> Result<Survey, SurveyError> {
        let missing = |error: CallError| SurveyError {
            failure: Failure::new(error.to_string()),
        };
        let server = self.find(server).map_err(missing)?;
        let link = server.ready().await.map_err(|not_ready| SurveyError {
            failure: not_ready.failure,
        })?;
        let read = timeout(SURVEY_TIMEOUT, survey_link(&link)).await;
        let failure = match read {
            Ok(Ok(survey)) => return Ok(survey),
            Ok(Err(LinkError::Lost)) => server.obituary().await,
            Ok(Err(LinkError::Failed(why))) => Failure::new(why),
            Ok(Err(LinkError::Protocol(error))) => Failure::new(format!(
                "`tools/list` failed: {} (error {})",
                error.message, error.code
            )),
            Err(_) => Failure::new(format!(
                "`tools/list` took longer than {} s",
                SURVEY_TIMEOUT.as_secs()
            )),
        };
        Err(SurveyError { failure })
    }

    /// Why each server that is not available now is so, by name.
    pub fn failures(&self) -> Vec<(ServerName, Failure)> {
        let failed = |server: &Server| Some((server.spec.name.clone(), server.last_failure()?));
        let mut failures: Vec<_> = self.servers.values().filter_map(failed).collect();
        failures.sort_by(|a, b| a.0.cmp(&b.0));
        failures
    }

    /// Whether this server failed last time and was not started since.
    pub fn is_down(&self, server: &ServerName) -> bool {
        self.servers
            .get(server)
            .is_some_and(|server| server.last_failure().is_some())
    }

    pub fn names(&self) -> impl Iterator<Item = &ServerName> {
        self.servers.keys()
    }

    /// Ends every server, all at once. No process of ours is left when this returns, unless the
    /// system cannot kill it.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.keepers.close();
        self.keepers.wait().await;
    }

    fn find(&self, name: &ServerName) -> Result<&Server, CallError> {
        self.servers
            .get(name)
            .ok_or_else(|| CallError::UnknownServer(name.clone()))
    }
}

async fn call_ready(server: &Server, request: &Request, ran: &mut Ran) -> Result<Json, CallError> {
    let name = || server.spec.name.clone();
    let link = server
        .ready()
        .await
        .map_err(|not_ready| CallError::Unavailable {
            server: name(),
            failure: not_ready.failure,
            tries: not_ready.tries,
            ran: Ran::No,
        })?;
    *ran = Ran::Maybe;
    match link.call(request).await {
        Ok(result) => Ok(result),
        Err(LinkError::Protocol(error)) => Err(CallError::Protocol {
            server: name(),
            error,
        }),
        Err(LinkError::Lost) => {
            let failure = server.obituary().await;
            Err(unavailable(name(), failure))
        }
        Err(LinkError::Failed(why)) => Err(unavailable(name(), Failure::new(why))),
    }
}

fn unavailable(server: ServerName, failure: Failure) -> CallError {
    CallError::Unavailable {
        server,
        failure,
        tries: 0,
        ran: Ran::Maybe,
    }
}

/// A call that timed out while its server was starting did not run.
fn mark_ran(error: CallError, reached: Ran) -> CallError {
    match error {
        CallError::TimedOut { server, limit, .. } => CallError::TimedOut {
            server,
            limit,
            ran: reached,
        },
        other => other,
    }
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
    #[serde(rename = "nextCursor", default)]
    next_cursor: Option<String>,
}

async fn survey_link(link: &Arc<Link>) -> Result<Survey, LinkError> {
    let mut survey = Survey {
        tools: Vec::new(),
        dropped: Vec::new(),
        about: link.about().clone(),
    };
    let mut cursors: Vec<String> = Vec::new();
    for _ in 0..PAGES_MAX {
        let answer = match link.list_tools(cursors.last().map(String::as_str)).await {
            Err(LinkError::Protocol(_)) if !survey.about.offers_tools => return Ok(survey),
            other => other?,
        };
        let page: Page<'_> = serde_json::from_str(answer.as_str())
            .map_err(|error| LinkError::Failed(format!("`tools/list` is malformed: {error}")))?;
        take_page(&page.tools, &mut survey);
        match page.next_cursor {
            None => return Ok(survey),
            Some(_) if survey.tools.len() >= TOOLS_MAX => {
                survey
                    .dropped
                    .push(format!("the list goes on after {TOOLS_MAX} tools"));
                return Ok(survey);
            }
            Some(cursor) if cursors.contains(&cursor) => {
                survey
                    .dropped
                    .push("the list repeats a page for ever".to_owned());
                return Ok(survey);
            }
            Some(cursor) => cursors.push(cursor),
        }
    }
    survey
        .dropped
        .push(format!("the list goes on after {PAGES_MAX} pages"));
    Ok(survey)
}

fn take_page(page: &[&RawValue], survey: &mut Survey) {
    let mut known: std::collections::HashSet<String> = survey
        .tools
        .iter()
        .map(|tool| tool.name().to_owned())
        .collect();
    for raw in page {
        match Tool::parse(raw.get()) {
            Ok(tool) if survey.tools.len() >= TOOLS_MAX => {
                survey
                    .dropped
                    .push(format!("`{}`: over {TOOLS_MAX} tools", tool.name()));
            }
            Ok(tool) if !known.insert(tool.name().to_owned()) => {
                survey
                    .dropped
                    .push(format!("`{}` is listed twice", tool.name()));
            }
            Ok(tool) => survey.tools.push(tool),
            Err(error) => survey.dropped.push(error.to_string()),
        }
    }
}
