//! `soak --crowd N`: N nodes in one process. A changed list reaches all of them soon, an idle cluster is quiet,
//! and a NATS server that was restarted has one watcher for each node.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use cluster::{Cluster, ClusterAccess, ClusterSettings, NoData, Role};
use fleet::{
    CallServers, Launch, Lifecycle, ListServers, Placement, Request, ServerSpec, Servers as _,
    Surroundings, Template,
};
use futures::FutureExt as _;
use jsonrpc::Json;
use parking_lot::Mutex;
use printable::{LetterCase, Pattern};
use tokio::time::{Instant, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tool::ServerName;

use crate::{
    fake::Step,
    house::{Programs, fake},
    nats::{KEY, Nats, NatsProgram},
};

/// The messages that an idle node may send in ten seconds.
const IDLE_MESSAGES_MAX: u64 = 50;

/// The time for each step of the run.
const STEP_WITHIN: Duration = Duration::from_mins(2);

struct Crowd {
    nats: Nats,
    nodes: Vec<Arc<Cluster>>,
    /// The lists that nodes have read: the number of tools, and the time.
    known: Arc<Mutex<Vec<(usize, Instant)>>>,
}

/// Runs it. Returns the outcome for people; an error is the reason why it failed.
pub(super) async fn run(
    programs: &Programs,
    nats: &NatsProgram,
    count: usize,
) -> Result<String, String> {
    let crowd = Crowd::begin(programs, nats.start(1), count);
    let outcome = crowd.play().await;
    let ends = crowd.nodes.iter().map(|node| node.stop());
    futures::future::join_all(ends).await;
    outcome
}

fn text(text: &str) -> Template {
    Template::parse(text).expect("it is a template")
}

fn far() -> ServerName {
    "far".parse().expect("it is a name")
}

/// The tool `grow` adds a tool to the list.
fn grow() -> Request {
    Request::call_tool("grow", Json::of_built("{}".to_owned()))
}

impl Crowd {
    /// Starts nodes that all have one server, which runs at the first.
    fn begin(programs: &Programs, nats: Nats, count: usize) -> Self {
        let script = fake("far")
            .tool("grow", vec![Step::Reveal, Step::text("grown")])
            .hidden_tool("late", Step::text("late"))
            .into_script();
        let script = serde_json::to_string(&script).expect("a script is JSON");
        let launch = Launch::Child {
            command: text(&programs.fake_server.display().to_string()),
            args: vec![text("--script"), text(&script.replace('$', "$$"))],
            env: Vec::new(),
            cwd: None,
        };
        let mut spec = ServerSpec::new(far(), launch);
        spec.placement =
            Placement::On(Pattern::new("n0", LetterCase::Matters).expect("it is a pattern"));
        let access = ClusterAccess {
            nats: nats.urls(),
            key: KEY.to_owned(),
            credentials: None,
            tls_ca: None,
            tls_identity: None,
        };
        let nodes = (0..count).map(|nth| begin_node(nth, &spec, &access));
        Self {
            nodes: nodes.collect(),
            nats,
            known: Arc::default(),
        }
    }

    async fn play(&self) -> Result<String, String> {
        let count = self.nodes.len();
        let mut told = String::new();
        let began = Instant::now();
        wait_for("all nodes know each other", || self.is_whole()).await?;
        let _ = writeln!(
            told,
            "{count} nodes know each other after {:.1?}",
            began.elapsed()
        );
        self.nodes.iter().for_each(|node| self.follow(node));
        let listed = self.nodes[0].survey(&far()).await;
        listed.map_err(|error| format!("the list was not read: {error}"))?;
        wait_for("all nodes read the list", || self.count(1) >= count - 1).await?;
        let began = Instant::now();
        self.call(count - 1).await?;
        wait_for("all nodes read the new list", || self.count(2) >= count).await?;
        let mut late: Vec<Duration> = {
            let known = self.known.lock();
            let new = known.iter().filter(|(tools, _)| *tools == 2);
            new.map(|(_, at)| *at - began).collect()
        };
        late.sort_unstable();
        let (median, last) = (late[late.len() / 2], late[late.len() * 99 / 100]);
        let _ = writeln!(
            told,
            "a changed list is known after {median:.0?} (median), {last:.0?} (p99)"
        );
        let sent = self.idle().await?;
        let _ = writeln!(told, "an idle node sends {sent} messages in ten seconds");
        let watchers = self.restart_nats().await?;
        let _ = writeln!(told, "{watchers} watchers after a restart of NATS");
        Ok(told)
    }

    /// Calls at this node. A call that may have run is made again: it changes nothing more.
    async fn call(&self, node: usize) -> Result<(), String> {
        let mut last = String::new();
        for _ in 0..10 {
            let (server, request, cancel) = (far(), grow(), CancellationToken::new());
            match self.nodes[node].call(&server, &request, &cancel).await {
                Ok(_) => return Ok(()),
                Err(error) => last = error.to_string(),
            }
        }
        Err(last)
    }

    fn is_whole(&self) -> bool {
        let state = |node: &Arc<Cluster>| node.cluster().map(|it| it.state());
        self.nodes.iter().filter_map(state).all(|state| {
            let connected = state.nodes.iter().filter(|it| it.is_connected);
            state.link == "connected" && connected.count() == self.nodes.len()
        })
    }

    /// Reads lists as the gateway of a node does.
    fn follow(&self, node: &Arc<Cluster>) {
        let (node, known) = (Arc::clone(node), Arc::clone(&self.known));
        tokio::spawn(async move {
            loop {
                node.changed().await;
                if let Some(Ok(survey)) = node.survey_running(&far()).await {
                    known.lock().push((survey.tools.len(), Instant::now()));
                }
            }
        });
    }

    fn count(&self, tools: usize) -> usize {
        let known = self.known.lock();
        known.iter().filter(|(known, _)| *known == tools).count()
    }

    async fn idle(&self) -> Result<u64, String> {
        let sent = async || {
            self.nats.monitor(0, "varz").await["in_msgs"]
                .as_u64()
                .unwrap_or(0)
        };
        let before = sent().await;
        sleep(Duration::from_secs(10)).await;
        let each = (sent().await - before) / self.nodes.len() as u64;
        if each > IDLE_MESSAGES_MAX {
            return Err(format!("an idle node sends {each} messages in ten seconds"));
        }
        Ok(each)
    }

    async fn restart_nats(&self) -> Result<u64, String> {
        self.nats.kill(0);
        self.nats.begin(0);
        wait_for("all nodes are back", || self.is_whole()).await?;
        self.call(1).await?;
        let page = "jsz?consumers=true&streams=true&accounts=true";
        let until = Instant::now() + STEP_WITHIN;
        loop {
            let watchers = self.nats.monitor(0, page).await["consumers"]
                .as_u64()
                .unwrap_or(0);
            if watchers <= self.nodes.len() as u64 {
                return Ok(watchers);
            }
            if Instant::now() >= until {
                return Err(format!("{watchers} watchers are left"));
            }
            sleep(Duration::from_secs(1)).await;
        }
    }
}

fn begin_node(nth: usize, spec: &ServerSpec, access: &ClusterAccess) -> Arc<Cluster> {
    let settings = ClusterSettings {
        name: "crowd".to_owned(),
        node: format!("n{nth}"),
        nats: Vec::new(),
        key: text(KEY),
        credentials: None,
        tls_ca: None,
        tls_identity: None,
        result_life: Duration::from_hours(1),
        require_shared: false,
    };
    let access = access.clone();
    Arc::new(Cluster::new(
        settings,
        Role::Member { home: nth as u64 },
        Surroundings::default(),
        vec![spec.clone()],
        Box::new(move || std::future::ready(Ok(access.clone())).boxed()),
        Arc::new(NoData),
    ))
}

async fn wait_for(what: &str, is_so: impl Fn() -> bool) -> Result<(), String> {
    let mut ticks = interval(Duration::from_millis(20));
    let waiting = async {
        while !is_so() {
            ticks.tick().await;
        }
    };
    let waited = timeout(STEP_WITHIN, waiting).await;
    waited.map_err(|_| format!("not within {} s: {what}", STEP_WITHIN.as_secs()))
}
