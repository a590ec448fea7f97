//! All servers: one call, one survey, one stop.

use std::{collections::HashSet, sync::Arc, time::Duration};

use jsonrpc::Json;
use parking_lot::{Mutex, MutexGuard};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tool::{ServerName, Tool};

use crate::{
    About, Applied, CallError, Failure, Ran, Request, Scope, ServerSpec, ServerState, Start,
    Surroundings, SurveyError,
    changes::Changes,
    error::RequestError,
    keeper::{LeasedLink, NotReady, Server},
    limits::{
        DROPPED_REASONS_MAX, LIST_BYTES_MAX, LOOK_AGAIN_MIN, PAGES_MAX, SURVEY_TIMEOUT,
        TOOL_BYTES_MAX, TOOLS_MAX,
    },
    link::Link,
    roster::Roster,
};

/// The servers of one configuration. A server is started by the first call or survey that wants
/// it (or with the program), rests when nobody calls for long, and ends at [`Fleet::stop`].
#[derive(Debug)]
pub struct Fleet {
    roster: Roster,
    changes: Arc<Changes>,
    stop: CancellationToken,
    keepers: TaskTracker,
}

/// The answer of a server to `tools/list` just now.
#[derive(Debug)]
pub struct Survey {
    /// In the server's order, each name once.
    pub tools: Vec<Tool>,
    /// Why each element that is not in `tools` was left out; of very many, that there are more.
    pub dropped: Vec<String>,
    /// From the handshake of the connection that was asked.
    pub about: About,
    /// The time for which the server says that its list stays as it is (revision 2026-07-28).
    pub time_to_live: Option<Duration>,
}

impl Fleet {
    /// Needs a runtime; starts no server.
    pub fn new(specs: Vec<ServerSpec>, surroundings: Surroundings) -> Self {
        let stop = CancellationToken::new();
        let keepers = TaskTracker::new();
        let changes = Arc::new(Changes::default());
        let roster = Roster::new(
            surroundings,
            Arc::clone(&changes),
            stop.clone(),
            keepers.clone(),
        );
        roster.apply(specs);
        Self {
            roster,
            changes,
            stop,
            keepers,
        }
    }

    /// Makes the servers those of `specs`, without a call being lost: one that changed or is no
    /// more finishes the calls it has.
    pub fn apply(&self, specs: Vec<ServerSpec>) -> Applied {
        self.roster.apply(specs)
    }

    /// Ends the servers that were one client's own.
    pub fn forget_client(&self, client: u64) {
        self.roster.forget_client(client);
    }

    /// Every server and what it is doing. Reads `/proc`, and so blocks for a moment.
    pub fn states(&self) -> Vec<ServerState> {
        let memory = processes::group_memory();
        let all = self.roster.all().into_iter();
        all.map(|(client, server)| server.state(client, &memory))
            .collect()
    }

    /// Starts the servers that are to start with the program.
    pub fn start_eager(&self) {
        for (_, server) in self.roster.all() {
            if server.spec.start == Start::Eager && server.spec.scope == Scope::Shared {
                server.want();
            }
        }
    }

    /// The next server whose tools may be others than they were: it said so, it was started
    /// anew, or its list is past its time. For one listener.
    pub async fn changed(&self) -> ServerName {
        self.changes.next().await
    }

    /// Calls a tool and waits for its result: the `result` of the answer as the server wrote it.
    ///
    /// The limit runs from here, a start included; where the server's specification says so,
    /// progress extends it. A call that is given up, cancelled, or whose future is dropped is
    /// cancelled at the server, and its late answer is dropped.
    pub async fn call(
        &self,
        server: &ServerName,
        request: &Request,
        cancel: &CancellationToken,
    ) -> Result<Json, CallError> {
        let found = self.roster.find(server, request.client.as_ref())?;
        let patience = Patience::new(&found.spec, request);
        let request = patience.watching(request);
        let mut ran = Ran::No;
        let answer = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(CallError::Cancelled),
            answer = self.call_in_turn(found.clone(), &request, &mut ran) => answer,
            limit = patience.ends() => {
                let server = server.clone();
                Err(CallError::TimedOut { server, limit, ran: Ran::Maybe })
            }
        }
        .map_err(|error| mark_ran(error, ran));
        found.vitals.count(answer.as_ref().err());
        answer
    }

    /// Waits for a place, calls, and calls once more where that is safe and the server died. A
    /// server that was replaced before the call reached it leaves it to the one in its place.
    async fn call_in_turn(
        &self,
        mut server: Server,
        request: &Request,
        ran: &mut Ran,
    ) -> Result<Json, CallError> {
        let connection = request.client.as_ref().and_then(|it| it.connection);
        let turns = connection.map(|it| self.roster.turns(&server.spec.name, it));
        let _turn = match &turns {
            Some(turns) => turns.acquire().await.ok(),
            None => None,
        };
        loop {
            match call_in_turn(&server, request, ran).await {
                Err(CallError::Unavailable { ran: Ran::No, .. })
                    if server.is_retired() && !self.stop.is_cancelled() =>
                {
                    server = self
                        .roster
                        .find(&server.spec.name, request.client.as_ref())?;
                }
                answer => return answer,
            }
        }
    }

    /// Reads every page of a server's `tools/list`, starting the server if need be.
    pub async fn survey(&self, server: &ServerName) -> Result<Survey, SurveyError> {
        let missing = |error: CallError| SurveyError {
            failure: Failure::new(error.to_string()),
        };
        let server = self.roster.find(server, None).map_err(missing)?;
        let leased = server.ready().await.map_err(|not_ready| SurveyError {
            failure: not_ready.failure,
        })?;
        survey_leased(&server, leased).await
    }

    /// The same of a server that is running; `None` of one that is not, which is left alone.
    pub async fn survey_running(&self, server: &ServerName) -> Option<Result<Survey, SurveyError>> {
        let server = self.roster.get(server)?;
        let leased = server.open_now()?;
        Some(survey_leased(&server, leased).await)
    }

    /// Has a server looked at again after its list's time to live, if it still runs then.
    pub fn look_again(&self, server: &ServerName, after: Duration) {
        let (changes, stop) = (Arc::clone(&self.changes), self.stop.clone());
        let server = server.clone();
        self.keepers.spawn(async move {
            let waiting = tokio::time::sleep(after.max(LOOK_AGAIN_MIN));
            if stop.run_until_cancelled(waiting).await.is_some() {
                changes.note(&server);
            }
        });
    }

    /// Why each server that is not available now is so, by name.
    pub fn failures(&self) -> Vec<(ServerName, Failure)> {
        let failed =
            |(_, server): (_, Server)| Some((server.spec.name.clone(), server.last_failure()?));
        let mut failures: Vec<_> = self.roster.all().into_iter().filter_map(failed).collect();
        failures.sort_by(|a, b| a.0.cmp(&b.0));
        failures.dedup_by(|a, b| a.0 == b.0);
        failures
    }

    /// Tells whether this server failed last time and was not started since.
    pub fn is_down(&self, server: &ServerName) -> bool {
        self.roster
            .get(server)
            .is_some_and(|server| server.last_failure().is_some())
    }

    /// Ends every server, all at once. No process of ours is left when this returns, unless the
    /// system cannot kill it.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.keepers.close();
        self.keepers.wait().await;
    }
}

async fn survey_leased(server: &Server, leased: LeasedLink) -> Result<Survey, SurveyError> {
    let read = timeout(SURVEY_TIMEOUT, survey_link(&leased.link)).await;
    let failure = match read {
        Ok(Ok(survey)) => return Ok(survey),
        Ok(Err(RequestError::Lost)) => {
            drop(leased);
            server.exit_reason().await
        }
        Ok(Err(RequestError::Failed(why))) => Failure::new(why),
        Ok(Err(RequestError::Protocol(error))) => Failure::new(format!(
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

async fn call_in_turn(
    server: &Server,
    request: &Request,
    ran: &mut Ran,
) -> Result<Json, CallError> {
    let _place = server.places.acquire().await;
    let may_retry = server.spec.retries_safe_calls && request.is_safe;
    match call_ready(server, request, ran).await {
        Err(CallError::Unavailable {
            ran: Ran::Maybe, ..
        }) if may_retry => call_ready(server, request, ran).await,
        answer => answer,
    }
}

async fn call_ready(server: &Server, request: &Request, ran: &mut Ran) -> Result<Json, CallError> {
    let name = || server.spec.name.clone();
    let not_ready = |not_ready: NotReady| CallError::Unavailable {
        server: name(),
        failure: not_ready.failure,
        tries: not_ready.tries,
        ran: Ran::No,
    };
    let leased = server.ready().await.map_err(not_ready)?;
    *ran = Ran::Maybe;
    match leased.link.call(request).await {
        Ok(result) => Ok(result),
        Err(RequestError::Protocol(error)) => Err(CallError::Protocol {
            server: name(),
            error,
        }),
        Err(RequestError::Lost) => {
            drop(leased);
            Err(unavailable(name(), server.exit_reason().await))
        }
        Err(RequestError::Failed(why)) => Err(unavailable(name(), Failure::new(why))),
    }
}

/// The limits of waiting for a call.
struct Patience {
    began: Instant,
    limit: Duration,
    /// The hard limit, where progress extends the other.
    limit_max: Option<Duration>,
    heard: Arc<Mutex<Instant>>,
}

impl Patience {
    fn new(spec: &ServerSpec, request: &Request) -> Self {
        let began = Instant::now();
        Self {
            began,
            limit: request.limit.unwrap_or(spec.call_timeout),
            limit_max: spec.call_timeout_max.filter(|_| !request.limit_is_final),
            heard: Arc::new(Mutex::new(began)),
        }
    }

    /// The request, its progress heard by us too where that counts.
    fn watching(&self, request: &Request) -> Request {
        let mut request = request.clone();
        if self.limit_max.is_some() {
            let heard = Arc::clone(&self.heard);
            let client = request.progress.take();
            request.progress = Some(Arc::new(move |params| {
                *lock(&heard) = Instant::now();
                if let Some(client) = &client {
                    client(params);
                }
            }));
        }
        request
    }

    /// Returns the limit that was reached.
    async fn ends(&self) -> Duration {
        loop {
            let quiet_until = *lock(&self.heard) + self.limit;
            let longest = self.limit_max.unwrap_or(self.limit).max(self.limit);
            let last = self.began + longest;
            let until = quiet_until.min(last);
            if until <= Instant::now() {
                return until.saturating_duration_since(self.began);
            }
            sleep_until(until).await;
        }
    }
}

fn lock(heard: &Mutex<Instant>) -> MutexGuard<'_, Instant> {
    heard.lock()
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
    #[serde(borrow, rename = "ttlMs", default)]
    ttl_ms: Option<&'a RawValue>,
}

async fn survey_link(link: &Arc<Link>) -> Result<Survey, RequestError> {
    let mut reading = Reading::new(link.about().clone());
    let mut cursors: Vec<String> = Vec::new();
    for _ in 0..PAGES_MAX {
        let answer = match link.list_tools(cursors.last().map(String::as_str)).await {
            Err(RequestError::Protocol(_)) if !reading.survey.about.offers_tools => {
                return Ok(reading.end(None));
            }
            other => other?,
        };
        let page: Page<'_> = serde_json::from_str(answer.as_str())
            .map_err(|error| RequestError::Failed(format!("`tools/list` is malformed: {error}")))?;
        reading.bytes = reading.bytes.saturating_add(answer.len());
        reading.take(&page.tools);
        let ttl_ms = page.ttl_ms.and_then(|raw| raw.get().parse::<u64>().ok());
        reading.survey.time_to_live = ttl_ms.filter(|ms| *ms > 0).map(Duration::from_millis);
        let Some(cursor) = page.next_cursor else {
            return Ok(reading.end(None));
        };
        if let Some(why) = reading.is_full() {
            return Ok(reading.end(Some(why)));
        }
        if cursors.contains(&cursor) {
            let why = "the list repeats a page for ever".to_owned();
            return Ok(reading.end(Some(why)));
        }
        cursors.push(cursor);
    }
    let why = format!("the list goes on after {PAGES_MAX} pages");
    Ok(reading.end(Some(why)))
}

/// A survey while its pages come.
struct Reading {
    survey: Survey,
    names: HashSet<String>,
    /// Of all pages so far.
    bytes: usize,
    /// Reasons that were not kept.
    untold: usize,
}

impl Reading {
    fn new(about: About) -> Self {
        Self {
            survey: Survey {
                tools: Vec::new(),
                dropped: Vec::new(),
                about,
                time_to_live: None,
            },
            names: HashSet::new(),
            bytes: 0,
            untold: 0,
        }
    }

    fn take(&mut self, page: &[&RawValue]) {
        for raw in page {
            match self.read(raw.get()) {
                Ok(tool) => {
                    self.names.insert(tool.name().to_owned());
                    self.survey.tools.push(tool);
                }
                Err(_) if self.survey.dropped.len() >= DROPPED_REASONS_MAX => self.untold += 1,
                Err(why) => self.survey.dropped.push(why),
            }
        }
    }

    fn read(&self, json: &str) -> Result<Tool, String> {
        let tool = Tool::parse(json).map_err(|error| error.to_string())?;
        let name = tool.name();
        if json.len() > TOOL_BYTES_MAX {
            let bytes = json.len();
            return Err(format!(
                "`{name}`: its definition has {bytes} bytes, over {TOOL_BYTES_MAX}"
            ));
        }
        if self.survey.tools.len() >= TOOLS_MAX {
            return Err(format!("`{name}`: over {TOOLS_MAX} tools"));
        }
        if self.names.contains(name) {
            return Err(format!("`{name}` is listed twice"));
        }
        Ok(tool)
    }

    /// Why no further page is read.
    fn is_full(&self) -> Option<String> {
        if self.survey.tools.len() >= TOOLS_MAX {
            return Some(format!("the list goes on after {TOOLS_MAX} tools"));
        }
        let is_long = self.bytes >= LIST_BYTES_MAX;
        is_long.then(|| format!("the list goes on after {LIST_BYTES_MAX} bytes"))
    }

    fn end(mut self, why: Option<String>) -> Survey {
        if self.untold > 0 {
            self.survey.dropped.push(format!("{} more", self.untold));
        }
        self.survey.dropped.extend(why);
        self.survey
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json, value::to_raw_value};

    use super::*;

    fn read(pages: &[Vec<Value>]) -> Reading {
        let mut reading = Reading::new(About::default());
        for page in pages {
            let raws: Vec<_> = page.iter().map(|it| to_raw_value(it).unwrap()).collect();
            let raws: Vec<&RawValue> = raws.iter().map(AsRef::as_ref).collect();
            reading.bytes += raws.iter().map(|raw| raw.get().len()).sum::<usize>();
            reading.take(&raws);
        }
        reading
    }

    #[test]
    fn a_definition_over_its_bound_is_left_out_with_a_reason() {
        let long = |bytes: usize| json!({"name": "big", "description": "x".repeat(bytes)});
        let fits = TOOL_BYTES_MAX - long(0).to_string().len();
        let survey = read(&[vec![long(fits)]]).end(None);
        assert_eq!((survey.tools.len(), survey.dropped.len()), (1, 0));
        let survey = read(&[vec![long(fits + 1), json!({"name": "small"})]]).end(None);
        assert_eq!(survey.tools.len(), 1);
        assert_eq!(
            survey.dropped,
            ["`big`: its definition has 1048577 bytes, over 1048576"]
        );
    }

    #[test]
    fn a_list_over_its_bound_is_read_no_further() {
        let page = |first: usize| -> Vec<Value> {
            let name = |nth: usize| format!("t{}", first + nth);
            let tool = |nth| json!({"name": name(nth), "description": "x".repeat(1_000_000)});
            (0..17).map(tool).collect()
        };
        assert_eq!(read(&[page(0)]).is_full(), None);
        assert_eq!(
            read(&[page(0), page(17)]).is_full().as_deref(),
            Some("the list goes on after 33554432 bytes")
        );
    }

    #[test]
    fn reasons_are_bounded_as_well() {
        let survey = read(&[vec![json!(7); 100_000]]).end(Some("the end".to_owned()));
        let dropped = survey.dropped;
        assert_eq!(dropped.len(), DROPPED_REASONS_MAX + 2);
        assert_eq!(&dropped[DROPPED_REASONS_MAX..], ["99900 more", "the end"]);
    }
}
