//! The state of this node: its servers, its lease, and what it knows of the others.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, OnceLock, atomic::AtomicUsize},
    time::Duration,
};

use bytes::Bytes;
use fleet::{
    Failure, Fleet, Lifecycle, ListServers, Placement, RunState, ServerSpec, Surroundings,
};
use parking_lot::{Mutex, RwLock};
use printable::Pattern;
use processes::machine_time;
use tokio::{
    sync::{Notify, mpsc, watch},
    time::Instant,
};
use tokio_util::{
    sync::CancellationToken,
    task::{AbortOnDropHandle, TaskTracker, task_tracker::TaskTrackerToken},
};
use tool::ServerName;

use crate::{
    bus::Bus,
    frames::{Beat, Instance, Op, millis},
    ledger::{Ledger, SharedRecord, Standing},
    nodes::{Nodes, Target},
    outgoing::{Exchange, Outgoing, RemoteError, with_hint},
    own::OwnData,
    seal::Boot,
    settings::{ClusterSettings, Role},
};

/// The servers whose lists changed and that were not read yet.
const CHANGED_MAX: usize = 4_096;

/// The trouble before the first connection.
pub(crate) const NO_BUS: &str = "there is no connection to NATS yet";

pub(crate) struct Core {
    pub(crate) settings: ClusterSettings,
    pub(crate) role: Role,
    /// Runs the servers that need no owner.
    pub(crate) base: Arc<Fleet>,
    /// Those of owned servers: their processes end at the deadline of the lease.
    pub(crate) owned_surroundings: Surroundings,
    pub(crate) specs: RwLock<BTreeMap<ServerName, ServerSpec>>,
    /// The servers with one owner that this node owns, each with a fleet that can be ended alone.
    pub(crate) owned: RwLock<BTreeMap<ServerName, OwnedServer>>,
    pub(crate) ledger: Mutex<Ledger>,
    pub(crate) nodes: Nodes,
    /// The lease of this node.
    pub(crate) tenure: Mutex<Option<Tenure>>,
    /// Set when the first connection is begun.
    pub(crate) bus: OnceLock<Arc<Bus>>,
    pub(crate) exchanges: Arc<Outgoing>,
    /// Counts calls, to choose among the nodes of one server in turn.
    pub(crate) turn: AtomicUsize,
    /// Servers whose lists changed.
    pub(crate) changed: mpsc::Sender<ServerName>,
    pub(crate) shared: watch::Sender<Option<SharedRecord>>,
    /// Counts changes of shared pins, and the times when all records were read.
    pub(crate) pins_changed: watch::Sender<u64>,
    /// The revision of the shared configuration that is in effect.
    pub(crate) applied_revision: Mutex<u64>,
    pub(crate) standing: StandingOfNode,
    pub(crate) own_data: Arc<dyn OwnData>,
    began: Instant,
}

/// The part that this node takes in its cluster.
#[derive(Debug, Default)]
pub(crate) struct StandingOfNode {
    /// The reasons why it does not take part, or not fully.
    troubles: Mutex<BTreeMap<Concern, String>>,
    pub(crate) is_draining: CancellationToken,
    /// The records have been read.
    pub(crate) is_loaded: std::sync::atomic::AtomicBool,
    /// Another process has the name of this node.
    pub(crate) is_double: std::sync::atomic::AtomicBool,
    /// A record or a node has changed.
    pub(crate) moved: Notify,
    /// A call waits for a server without an owner.
    pub(crate) wanted: Notify,
    /// A write has failed: the bucket may differ from the ledger.
    pub(crate) doubted: Notify,
    /// The key of the newest write that was refused, and the revision that it was to replace.
    pub(crate) refused: Mutex<Option<(String, u64)>>,
}

/// The parts of a cluster that can be in trouble, each with one reason at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Concern {
    /// The connection to NATS.
    Link,
    /// The lease of this node.
    Lease,
    /// The read of all records.
    Records,
    /// Records that NATS lost.
    Lost,
    /// The newest write of a record.
    Writes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tenure {
    pub(crate) grant: u64,
    /// Its end, unless it is renewed.
    pub(crate) until: Instant,
    /// The same end as a time of the machine, which goes on while the machine sleeps.
    pub(crate) until_machine: Duration,
}

impl Tenure {
    /// Returns true if the lease is valid now.
    pub(crate) fn holds(&self) -> bool {
        Instant::now() < self.until && machine_time() < self.until_machine
    }
}

#[derive(Debug)]
pub(crate) struct OwnedServer {
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) epoch: u64,
    /// Cancelled when it is owned no more.
    pub(crate) lost: CancellationToken,
    /// Its calls.
    pub(crate) calls: TaskTracker,
    /// Reports changes of its list.
    _reporting: AbortOnDropHandle<()>,
}

/// A call of an owned server.
#[derive(Debug)]
pub(crate) struct Hold {
    /// Cancelled when the server is owned no more.
    pub(crate) lost: CancellationToken,
    _call: TaskTrackerToken,
}

impl OwnedServer {
    fn hold(&self) -> Hold {
        Hold {
            lost: self.lost.clone(),
            _call: self.calls.token(),
        }
    }
}

/// The place that runs a server.
#[derive(Debug)]
pub(crate) enum Place {
    /// This node.
    Here(Arc<Fleet>, Option<Hold>),
    /// One of these processes; for a server with one owner, with the epoch.
    There(Vec<Target>, Option<u64>),
    /// No node now, but one may come within seconds.
    Soon(Failure),
    /// No node.
    Nowhere(Failure),
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Core({})", self.settings.node)
    }
}

impl Core {
    pub(crate) fn new(
        settings: ClusterSettings,
        role: Role,
        surroundings: Surroundings,
        own_data: Arc<dyn OwnData>,
    ) -> (Self, mpsc::Receiver<ServerName>) {
        let (changed, receiver) = mpsc::channel(CHANGED_MAX);
        let (shared, _) = watch::channel(None);
        let owned_surroundings = Surroundings {
            spawner: Arc::new(surroundings.spawner.with_deadline()),
            ..surroundings.clone()
        };
        let core = Self {
            settings,
            role,
            base: Arc::new(Fleet::new(Vec::new(), surroundings)),
            owned_surroundings,
            specs: RwLock::default(),
            owned: RwLock::default(),
            ledger: Mutex::default(),
            nodes: Nodes::default(),
            tenure: Mutex::default(),
            bus: OnceLock::new(),
            exchanges: Arc::default(),
            turn: AtomicUsize::new(0),
            changed,
            shared,
            pins_changed: watch::Sender::new(0),
            applied_revision: Mutex::default(),
            standing: StandingOfNode::default(),
            own_data,
            began: Instant::now(),
        };
        (core, receiver)
    }

    /// The time on this node's clock.
    pub(crate) fn clock_ms(&self) -> u64 {
        millis(self.began.elapsed())
    }

    pub(crate) fn boot(&self) -> Option<Boot> {
        self.bus.get().map(|bus| bus.boot())
    }

    /// Returns true if NATS is connected.
    pub(crate) fn is_linked(&self) -> bool {
        self.bus.get().is_some_and(|bus| bus.is_connected())
    }

    /// Sends a request to a process.
    pub(crate) async fn begin(
        &self,
        target: &Target,
        instance: Option<Instance>,
        op: Op,
    ) -> Result<Exchange, RemoteError> {
        let no_bus = || RemoteError::NotRun(NO_BUS.to_owned());
        let bus = self.bus.get().ok_or_else(no_bus)?;
        self.exchanges.begin(bus, target, instance, op).await
    }

    /// Sends a request without sinks to a process, and waits for its end.
    pub(crate) async fn ask(
        &self,
        target: &Target,
        instance: Option<Instance>,
        op: Op,
    ) -> Result<Bytes, RemoteError> {
        let exchange = self.begin(target, instance, op).await?;
        exchange.finish(&self.nodes).await
    }

    pub(crate) fn set_trouble(&self, concern: Concern, trouble: Option<String>) {
        let mut troubles = self.standing.troubles.lock();
        let Some(why) = trouble else {
            troubles.remove(&concern);
            return;
        };
        if troubles.get(&concern) != Some(&why) {
            tracing::warn!(node = self.settings.node, why, "the cluster");
            troubles.insert(concern, why);
        }
    }

    /// The reasons why this node does not take part, or not fully.
    pub(crate) fn trouble(&self) -> Option<String> {
        let troubles = self.standing.troubles.lock();
        let all: Vec<&str> = troubles.values().map(String::as_str).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// The lease, if it is valid now.
    pub(crate) fn tenure_now(&self) -> Option<Tenure> {
        let tenure = *self.tenure.lock();
        tenure.filter(Tenure::holds)
    }

    /// Returns true if this node runs a server with this placement.
    pub(crate) fn runs(&self, placement: &Placement) -> bool {
        match placement {
            Placement::Everywhere | Placement::Client => true,
            Placement::On(pattern) => pattern.matches(&self.settings.node),
            Placement::One => false,
        }
    }

    /// Returns true if this node must not call before it has the configuration that nodes share, with its rules.
    fn lacks_rules(&self) -> bool {
        self.settings.require_shared && *self.applied_revision.lock() == 0
    }

    /// Decides where a server runs.
    pub(crate) fn place(&self, server: &ServerName) -> Place {
        if self.lacks_rules() {
            return Place::Nowhere(with_hint(
                "this node does not have the rules of the cluster yet, and `cluster.require_shared` is set"
                    .to_owned(),
            ));
        }
        let placement = self.specs.read().get(server).map(|it| it.placement.clone());
        match placement {
            Some(Placement::One) => self.place_of_one(server),
            Some(Placement::On(pattern)) if !pattern.matches(&self.settings.node) => {
                self.place_on(&pattern)
            }
            _ => Place::Here(Arc::clone(&self.base), None),
        }
    }

    /// Returns the fleet that runs a server here, for a request of another node.
    pub(crate) fn serves(
        &self,
        server: &ServerName,
        epoch: Option<u64>,
    ) -> Option<(Arc<Fleet>, Option<Hold>)> {
        if self.lacks_rules() {
            return None;
        }
        let placement = self.specs.read().get(server)?.placement.clone();
        match placement {
            Placement::Client => None,
            Placement::One => {
                let owned = self.owned.read();
                let mine = owned.get(server).filter(|it| epoch == Some(it.epoch))?;
                self.tenure_now()?;
                Some((Arc::clone(&mine.fleet), Some(mine.hold())))
            }
            other => self.runs(&other).then(|| (Arc::clone(&self.base), None)),
        }
    }

    fn place_of_one(&self, server: &ServerName) -> Place {
        if let Some(mine) = self.owned.read().get(server)
            && self.tenure_now().is_some()
        {
            return Place::Here(Arc::clone(&mine.fleet), Some(mine.hold()));
        }
        let standing = self.ledger.lock().standing(server);
        match standing {
            Standing::Owned {
                node, boot, epoch, ..
            } if Some(boot) != self.boot() => {
                Place::There(vec![self.nodes.target(&node, boot)], Some(epoch))
            }
            _ => Place::Soon(self.explain_no_owner(server)),
        }
    }

    /// Says why no node runs a server with one owner.
    pub(crate) fn explain_no_owner(&self, server: &ServerName) -> Failure {
        let standing = self.ledger.lock().standing(server);
        let is_linked = self.is_linked();
        let trouble = self.trouble();
        let why = match standing {
            _ if !is_linked => {
                let trouble = trouble
                    .as_deref()
                    .unwrap_or("there is no connection to NATS");
                format!("no node can be asked for it: {trouble}")
            }
            Standing::Owned { node, .. } if node == self.settings.node => {
                let trouble = trouble.as_deref().unwrap_or("its lease has ended");
                format!("this node gave it up, since another may run it now: {trouble}")
            }
            Standing::Owned { node, until, .. } => {
                let left = until.saturating_duration_since(Instant::now());
                format!(
                    "node `{node}`, which runs it, does not answer; another node takes it over in {} s \
                     unless it comes back",
                    left.as_secs() + 1
                )
            }
            Standing::Free { .. } => match trouble {
                Some(trouble) => format!("no node of the cluster runs it: {trouble}"),
                None => "no node of the cluster runs it yet".to_owned(),
            },
        };
        with_hint(why)
    }

    fn place_on(&self, pattern: &Pattern) -> Place {
        let targets = self.nodes.matching(Some(pattern));
        if !targets.is_empty() {
            return Place::There(targets, None);
        }
        let why = match self.nodes.find_absent(pattern) {
            Some((node, _, true)) => format!("node `{node}` has left the cluster"),
            Some((node, seconds, false)) => {
                format!("node `{node}` is not connected; its last message came {seconds} s ago")
            }
            None => format!("no node that matches `{pattern}` is connected"),
        };
        let failure = with_hint(why);
        // Nodes introduce themselves right after the start.
        if self.began.elapsed() < Duration::from_secs(5) {
            Place::Soon(failure)
        } else {
            Place::Nowhere(failure)
        }
    }

    /// Begins to run a server that this node owns now.
    pub(crate) fn own(&self, server: &ServerName, epoch: u64) {
        let Some(spec) = self.specs.read().get(server).cloned() else {
            return;
        };
        let is_eager = spec.start == fleet::Start::Eager;
        let fleet = Arc::new(Fleet::new(vec![spec], self.owned_surroundings.clone()));
        if is_eager {
            fleet.start_eager();
        }
        let (listed, changed) = (Arc::clone(&fleet), self.changed.clone());
        let reporting = tokio::spawn(async move {
            loop {
                let server = listed.changed().await;
                if changed.send(server).await.is_err() {
                    return;
                }
            }
        });
        let owned = OwnedServer {
            fleet,
            epoch,
            lost: CancellationToken::new(),
            calls: TaskTracker::new(),
            _reporting: AbortOnDropHandle::new(reporting),
        };
        tracing::info!(server = %server, epoch, "this node runs it now");
        self.owned.write().insert(server.clone(), owned);
        if !self.ledger.lock().lists.contains_key(server) {
            // With a full queue, the next call surveys it.
            let _ = self.changed.try_send(server.clone());
        }
        self.standing.moved.notify_waiters();
    }

    /// The servers that run here and are not stopped.
    fn running(&self) -> Vec<(ServerName, RunState)> {
        let mut states = self.base.quick_states();
        for owned in self.owned.read().values() {
            states.extend(owned.fleet.quick_states());
        }
        let mut running: BTreeMap<ServerName, RunState> = BTreeMap::new();
        for state in states {
            if state.state != RunState::Stopped && self.is_shared(&state.name) {
                running.insert(state.name, state.state);
            }
        }
        running.into_iter().collect()
    }

    /// Returns true for a server that other nodes call.
    pub(crate) fn is_shared(&self, server: &ServerName) -> bool {
        let specs = self.specs.read();
        let placement = specs.get(server).map(|it| &it.placement);
        matches!(placement, Some(Placement::One | Placement::On(_)))
    }

    /// The subject of this node's messages of presence. Its last word is the name, for nodes that cannot open
    /// them.
    pub(crate) fn presence(&self) -> String {
        format!("node.{}", self.settings.node)
    }

    pub(crate) fn beat(&self, is_new: bool, is_leaving: bool) -> Beat {
        let is_double = &self.standing.is_double;
        let is_double = is_double.load(std::sync::atomic::Ordering::Relaxed);
        Beat {
            node: self.settings.node.clone(),
            clock_ms: self.clock_ms(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            running: self.running(),
            owned: self.owned.read().keys().cloned().collect(),
            is_member: self.role != Role::Guest && !is_double,
            is_leaving,
            is_new,
            shared_revision: *self.applied_revision.lock(),
            log_head: self.own_data.log_head(),
        }
    }
}
