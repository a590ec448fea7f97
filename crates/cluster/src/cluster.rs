//! The servers of all nodes, as [`Servers`].

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use fleet::{
    Applied, Asks, CallError, CallServers, CallerServices, ClusterNode, Failure, Launch, Lifecycle,
    ListServers, Placement, Ran, Request, RunState, ServerSpec, ServerState, Servers, Sharing,
    Subscriber, Surroundings, Survey, SurveyError, Variables, WatchGuard,
};
use futures::{
    FutureExt as _,
    future::{BoxFuture, try_join_all},
};
use jsonrpc::Json;
use sha2::{Digest as _, Sha256};
use tokio::{
    sync::{Mutex, mpsc},
    time::{Instant, sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use tool::{ClientId, ServerName};

use crate::{
    book,
    core::{Core, Place},
    frames::{Instance, Op, unavailable},
    ledger::{ClusterRecord, PinsRecord, SharedRecord},
    lists,
    outgoing::RemoteError,
    own::OwnData,
    remote_watch::watch_elsewhere,
    routing::{PLACE_WAIT, call_somewhere},
    run::run,
    settings::{ClusterSettings, ReadAccess, Role},
    tenure,
};

/// The time for which another node's survey is waited for.
const SURVEY_WAIT: Duration = Duration::from_mins(2);

/// The time that the end of this process may take for messages to other nodes.
const LEAVE_WAIT: Duration = Duration::from_millis(800);

/// The servers of one configuration on all nodes.
pub struct Cluster {
    core: Arc<Core>,
    changes: Mutex<mpsc::Receiver<ServerName>>,
    running: AbortOnDropHandle<()>,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cluster({})", self.core.settings.node)
    }
}

impl Cluster {
    /// Begins to connect, and starts no server. Needs a runtime.
    pub fn new(
        settings: ClusterSettings,
        role: Role,
        surroundings: Surroundings,
        specs: Vec<ServerSpec>,
        access: ReadAccess,
        own_data: Arc<dyn OwnData>,
    ) -> Self {
        let (core, changes) = Core::new(settings, role, surroundings, own_data);
        let core = Arc::new(core);
        let running = tokio::spawn(run(Arc::clone(&core), access));
        let cluster = Self {
            core,
            changes: Mutex::new(changes),
            running: AbortOnDropHandle::new(running),
        };
        cluster.apply(specs);
        cluster
    }

    /// The shared configuration, whenever it changes.
    pub fn shared(&self) -> tokio::sync::watch::Receiver<Option<SharedRecord>> {
        self.core.shared.subscribe()
    }

    /// Remembers the revision of the shared configuration that is in effect.
    pub fn note_applied(&self, revision: u64) {
        *self.core.applied_revision.lock() = revision;
    }

    /// Counts changes of the pins that nodes share, and the times when all records were read.
    pub fn pins_changed(&self) -> tokio::sync::watch::Receiver<u64> {
        self.core.pins_changed.subscribe()
    }

    /// Returns the pins of each server that nodes share. `None`: the records have not been read.
    pub fn pins(&self) -> Option<BTreeMap<ServerName, PinsRecord>> {
        if !self.core.standing.is_loaded.load(Ordering::Relaxed) {
            return None;
        }
        let ledger = self.core.ledger.lock();
        let mut pins = ledger.pins.clone();
        pins.retain(|name, _| !ledger.is_lost(&format!("pins.{name}")));
        Some(pins)
    }

    /// Names what the pins of a server are about. `None`: they are not shared. A server of one node has one list
    /// for all. One that runs everywhere may be another one at each node: its address tells.
    pub fn pins_scope(&self, server: &ServerName) -> Option<String> {
        let specs = self.core.specs.read();
        let spec = specs.get(server)?;
        match spec.placement {
            Placement::One | Placement::On(_) => Some(String::new()),
            Placement::Everywhere => {
                let launch = match &spec.launch {
                    Launch::Remote { url, .. } => format!("{url:?}"),
                    other => format!("{other:?}"),
                };
                Some(hex::encode(Sha256::digest(launch)))
            }
            Placement::Client => None,
        }
    }

    /// Replaces this version of the pins of a server that nodes share; 0: there are none. An error says why they
    /// stay as they are.
    pub async fn write_pins(
        &self,
        server: ServerName,
        (scope, text): (String, String),
        over: u64,
    ) -> Result<(), String> {
        let version = {
            let ledger = self.core.ledger.lock();
            ledger.pins.get(&server).map_or(0, |it| it.version)
        };
        if over != 0 && over != version {
            return Err("another node decided meanwhile".to_owned());
        }
        let record = PinsRecord {
            version: version + 1,
            node: self.core.settings.node.clone(),
            scope,
            text,
        };
        let writing = book::write(&self.core, ClusterRecord::Pins(server, record)).await;
        match writing {
            Ok(true) => Ok(()),
            Ok(false) => Err("another node decided at the same time".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Asks the node of a server to survey it, and reads the list that it publishes.
    async fn survey_elsewhere(&self, server: &ServerName) -> Result<Survey, SurveyError> {
        if let Some(read) = lists::read(&self.core, server).await {
            return read;
        }
        let until = Instant::now() + PLACE_WAIT;
        loop {
            let why = match self.core.place(server) {
                Place::Here(fleet, _) => return self.survey_here(&fleet, server).await,
                Place::There(targets, epoch) => {
                    let instance = Some(Instance::new(server, epoch));
                    let asking = self.core.ask(&targets[0], instance, Op::Survey);
                    match timeout(SURVEY_WAIT, asking).await {
                        Ok(Ok(_)) => break,
                        Ok(Err(RemoteError::Call(CallError::Unavailable { failure, .. }))) => {
                            return Err(SurveyError { failure });
                        }
                        Ok(Err(RemoteError::Call(error))) => error.to_string(),
                        Ok(Err(RemoteError::NotRun(why) | RemoteError::Lost(why))) => why,
                        Err(_) => "it took too long".to_owned(),
                    }
                }
                Place::Soon(failure) | Place::Nowhere(failure) => failure.why,
            };
            if Instant::now() >= until {
                let read = lists::read(&self.core, server).await;
                return read.unwrap_or_else(|| Err(lists::fail(why)));
            }
            self.core.standing.wanted.notify_one();
            sleep(Duration::from_millis(100)).await;
        }
        // The record may come after the answer.
        for _ in 0..20 {
            if let Some(read) = lists::read(&self.core, server).await {
                return read;
            }
            sleep(Duration::from_millis(100)).await;
        }
        Err(lists::fail(
            "its list of tools was not published".to_owned(),
        ))
    }

    async fn survey_here(
        &self,
        fleet: &fleet::Fleet,
        server: &ServerName,
    ) -> Result<Survey, SurveyError> {
        let survey = fleet.survey(server).await?;
        if self.core.is_shared(server) {
            lists::publish(&self.core, server, &survey).await;
        }
        Ok(survey)
    }

    /// The fleets that run servers here.
    fn fleets(&self) -> Vec<Arc<fleet::Fleet>> {
        let owned = self.core.owned.read();
        let owned = owned.values().map(|it| Arc::clone(&it.fleet));
        std::iter::once(Arc::clone(&self.core.base))
            .chain(owned)
            .collect()
    }

    /// The servers that are known and run at other nodes.
    fn elsewhere(&self) -> Vec<(ServerName, Place)> {
        let names: Vec<ServerName> = self.core.specs.read().keys().cloned().collect();
        let places = names.into_iter().map(|name| {
            let place = self.core.place(&name);
            (name, place)
        });
        let is_elsewhere = |(_, place): &(_, Place)| !matches!(place, Place::Here(..));
        places.filter(is_elsewhere).collect()
    }

    fn with_others(&self, mut states: Vec<ServerState>) -> Vec<ServerState> {
        let nodes = &self.core.nodes;
        for (name, place) in self.elsewhere() {
            states.retain(|it| it.name != name);
            let (node, state) = match place {
                Place::There(targets, _) => {
                    let node = targets[0].node.clone();
                    let state = nodes.state_of(&name, &node).unwrap_or_default();
                    (node, state)
                }
                _ => (String::new(), RunState::Down),
            };
            states.push(ServerState::of_node(name, node, state));
        }
        states
    }

    async fn finish(&self, is_hurried: bool) {
        let core = &self.core;
        core.standing.is_draining.cancel();
        tokio::join!(
            tenure::end_fleet(&core.base, is_hurried),
            tenure::release(core, None, is_hurried),
        );
        let leaving = async {
            tenure::leave(core).await;
            if let Some(bus) = core.bus.get() {
                let subject = core.presence();
                let _ = bus.send(&subject, None, &core.beat(false, true), b"").await;
                bus.flush().await;
            }
        };
        let _ = timeout(LEAVE_WAIT, leaving).await;
        self.running.abort();
    }
}

impl CallServers for Cluster {
    fn call<'a>(
        &'a self,
        server: &'a ServerName,
        request: &'a Request,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Json, CallError>> {
        call_somewhere(&self.core, server, request, cancel).boxed()
    }

    fn watch<'a>(
        &'a self,
        server: &'a ServerName,
        uri: &'a str,
        subscriber: Subscriber,
    ) -> BoxFuture<'a, Result<WatchGuard, CallError>> {
        async move {
            match self.core.place(server) {
                Place::Here(fleet, _) => fleet.watch(server, uri, subscriber).await,
                _ => watch_elsewhere(Arc::clone(&self.core), server.clone(), uri, subscriber).await,
            }
        }
        .boxed()
    }

    fn log_in<'a>(
        &'a self,
        server: &'a ServerName,
        client: Option<&'a ClientId>,
        asks: &'a Arc<dyn Asks>,
    ) -> BoxFuture<'a, bool> {
        async move {
            match self.core.place(server) {
                Place::Here(fleet, _) => fleet.log_in(server, client, asks).await,
                _ => false,
            }
        }
        .boxed()
    }
}

impl ListServers for Cluster {
    fn survey<'a>(&'a self, server: &'a ServerName) -> BoxFuture<'a, Result<Survey, SurveyError>> {
        async move {
            match self.core.place(server) {
                Place::Here(fleet, _) => self.survey_here(&fleet, server).await,
                _ => self.survey_elsewhere(server).await,
            }
        }
        .boxed()
    }

    fn survey_running<'a>(
        &'a self,
        server: &'a ServerName,
    ) -> BoxFuture<'a, Option<Result<Survey, SurveyError>>> {
        async move {
            let Place::Here(fleet, _) = self.core.place(server) else {
                return lists::read(&self.core, server).await;
            };
            // A server that no node has listed is asked when it has its first owner.
            let is_known = self.core.ledger.lock().lists.contains_key(server);
            if self.core.is_shared(server) && !is_known {
                return Some(self.survey_here(&fleet, server).await);
            }
            let survey = fleet.survey_running(server).await;
            if let Some(Ok(survey)) = &survey
                && self.core.is_shared(server)
            {
                lists::publish(&self.core, server, survey).await;
            }
            survey
        }
        .boxed()
    }

    fn changed(&self) -> BoxFuture<'_, ServerName> {
        async move {
            let mut changes = self.changes.lock().await;
            tokio::select! {
                server = self.core.base.changed() => server,
                Some(server) = changes.recv() => server,
            }
        }
        .boxed()
    }

    fn look_again(&self, server: &ServerName, after: Duration) {
        match self.core.place(server) {
            Place::Here(fleet, _) => fleet.look_again(server, after),
            _ => self.core.base.look_again(server, after),
        }
    }

    fn sharing(&self) -> Vec<Sharing> {
        self.core.base.sharing()
    }

    fn states(&self) -> Vec<ServerState> {
        let states = self.fleets().iter().flat_map(|it| it.states()).collect();
        self.with_others(states)
    }

    fn quick_states(&self) -> Vec<ServerState> {
        let fleets = self.fleets();
        self.with_others(fleets.iter().flat_map(|it| it.quick_states()).collect())
    }

    fn failures(&self) -> Vec<(ServerName, Failure)> {
        let mut failures: Vec<_> = self.fleets().iter().flat_map(|it| it.failures()).collect();
        for (name, place) in self.elsewhere() {
            if let Place::Nowhere(failure) = place {
                failures.push((name, failure));
            }
        }
        failures.sort_by(|one, other| one.0.cmp(&other.0));
        failures
    }

    fn is_down(&self, server: &ServerName) -> bool {
        match self.core.place(server) {
            Place::Here(fleet, _) => fleet.is_down(server),
            Place::There(..) | Place::Soon(_) => false,
            Place::Nowhere(_) => true,
        }
    }

    fn needs_login(&self, server: &ServerName) -> bool {
        match self.core.place(server) {
            Place::Here(fleet, _) => fleet.needs_login(server),
            _ => false,
        }
    }

    fn list_mended(&self) -> Vec<ServerName> {
        let fleets = self.fleets();
        fleets.iter().flat_map(|it| it.list_mended()).collect()
    }
}

impl Lifecycle for Cluster {
    fn apply(&self, specs: Vec<ServerSpec>) -> Applied {
        let core = &self.core;
        let base = specs
            .iter()
            .filter(|it| core.runs(&it.placement))
            .cloned()
            .collect();
        let mut applied = core.base.apply(base);
        let new = specs.into_iter().map(|it| (it.name.clone(), it)).collect();
        let old = std::mem::replace(&mut *core.specs.write(), new);
        let new = core.specs.read();
        for (name, spec) in new.iter().filter(|(_, it)| !core.runs(&it.placement)) {
            match old.get(name) {
                Some(before) if before == spec => {}
                Some(before) => {
                    applied
                        .changed
                        .push((name.clone(), before.launch != spec.launch));
                    if let Some(owned) = core.owned.read().get(name) {
                        owned.fleet.apply(vec![spec.clone()]);
                    }
                }
                None => applied.added.push(name.clone()),
            }
        }
        // A server whose placement changed was removed from one fleet and is run by another.
        let removed = old.into_keys().filter(|name| !new.contains_key(name));
        applied.removed = removed.collect();
        let owned: Vec<ServerName> = core.owned.read().keys().cloned().collect();
        for name in owned {
            let spec = new.get(&name);
            if spec.is_none_or(|it| it.placement != Placement::One) {
                let core = Arc::clone(core);
                tokio::spawn(async move { tenure::release(&core, Some(&name), false).await });
            }
        }
        core.standing.wanted.notify_one();
        applied
    }

    /// A server on several nodes is restarted on all of them; the slowest one counts.
    fn restart<'a>(
        &'a self,
        server: &'a ServerName,
        waits: bool,
    ) -> BoxFuture<'a, Result<Duration, CallError>> {
        async move {
            let (targets, epoch) = match self.core.place(server) {
                Place::Here(fleet, _) => return fleet.restart(server, waits).await,
                Place::There(targets, epoch) => (targets, epoch),
                Place::Soon(failure) | Place::Nowhere(failure) => {
                    return Err(unavailable(server, failure, Ran::No));
                }
            };
            let restarts = targets.iter().map(async |target| {
                let instance = Some(Instance::new(server, epoch));
                let op = if waits {
                    Op::RestartWaiting
                } else {
                    Op::Restart
                };
                let asked = self.core.ask(target, instance, op).await;
                let answer = asked.map_err(|error| match error {
                    RemoteError::Call(error) => error,
                    RemoteError::NotRun(why) | RemoteError::Lost(why) => {
                        unavailable(server, Failure::new(why), Ran::No)
                    }
                })?;
                let ms = str::from_utf8(&answer).ok().and_then(|it| it.parse().ok());
                Ok(Duration::from_millis(ms.unwrap_or_default()))
            });
            let times: Vec<Duration> = try_join_all(restarts).await?;
            Ok(times.into_iter().max().unwrap_or_default())
        }
        .boxed()
    }

    fn start_eager(&self) {
        self.core.base.start_eager();
    }

    fn admit_client(&self, client: u64, variables: Arc<Variables>) -> Vec<ServerName> {
        self.core.base.admit_client(client, variables)
    }

    fn forget_client(&self, client: u64) {
        self.core.base.forget_client(client);
    }

    fn tell_roots_changed(&self, client: u64) {
        self.core.base.tell_roots_changed(client);
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        self.finish(true).boxed()
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        self.finish(false).boxed()
    }
}

impl Servers for Cluster {
    fn callers(&self) -> Option<&dyn CallerServices> {
        Some(&*self.core.base)
    }

    fn cluster(&self) -> Option<Arc<dyn ClusterNode>> {
        Some(Arc::clone(&self.core) as Arc<dyn ClusterNode>)
    }
}
