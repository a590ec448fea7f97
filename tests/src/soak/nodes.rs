//! `soak --nodes N --nats N`: calls over the nodes of a cluster, whose daemons, NATS servers and links fail at
//! random.
//!
//! At the end each call must have one answer, no call may have run twice, none may have run that was said not
//! to have, no server with one owner may have run twice at one time, and no process may be left.

use std::{
    collections::HashMap,
    fmt::Write as _,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::{
    namespaces::Machines,
    random::Random,
    relay::{LinkMode, Relay},
};
use crate::{
    client::Client,
    fake::Step,
    house::{Fake, House, Programs, fake},
    nats::{KEY, Nats, NatsProgram},
    processes::kill,
};

/// The plan of a run.
#[derive(Debug, Clone)]
pub(super) struct NodesPlan {
    pub(super) nodes: usize,
    pub(super) nats: usize,
    pub(super) length: Duration,
    /// No more calls than these.
    pub(super) calls_max: u64,
    pub(super) seed: u64,
    /// The time from one fault to the next, about; `None`: no faults.
    pub(super) fault_every: Option<Duration>,
    /// The number of clients of each node.
    pub(super) clients: usize,
    /// Each node and each NATS server has a network namespace of its own.
    pub(super) has_machines: bool,
}

/// The time within which each call has an answer.
const ANSWERED_WITHIN: Duration = Duration::from_secs(90);

/// The time within which everything works again after the last fault.
const HEALED_WITHIN: Duration = Duration::from_mins(2);

/// The statement of an answer about its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Good,
    DidNotRun,
    MayHaveRun,
}

#[derive(Debug, Default)]
struct Shared {
    next: AtomicU64,
    is_over: AtomicBool,
    answers: Mutex<HashMap<u64, Answer>>,
    failures: Mutex<Vec<String>>,
    /// Milliseconds of good answers.
    times: Mutex<Vec<u64>>,
}

impl Shared {
    fn fail(&self, why: String) {
        let mut failures = self.failures.lock();
        if failures.len() < 50 {
            failures.push(why);
        }
    }
}

struct Estate {
    nats: Nats,
    houses: Vec<House>,
    net: Net,
}

/// The connections between nodes and NATS servers.
enum Net {
    /// By node, then by NATS server.
    Relays(Vec<Vec<Relay>>),
    /// The NATS servers, then the nodes.
    Machines(Machines),
}

/// The outcome of a run, for people; and whether it was good.
#[derive(Debug)]
pub(super) struct NodesOutcome {
    pub(super) text: String,
    pub(super) is_good: bool,
}

/// Runs the soak.
pub(super) async fn run(
    programs: &Programs,
    nats: &NatsProgram,
    plan: NodesPlan,
) -> Result<NodesOutcome, String> {
    let estate = begin(programs, nats, &plan).await?;
    let shared = Arc::new(Shared::default());
    let began = Instant::now();
    let mut callers = JoinSet::new();
    for house in &estate.houses {
        for nth in 0..plan.clients {
            let client = if nth % 2 == 0 {
                house.client().await
            } else {
                house.modern_client().await
            };
            callers.spawn(call_on(client, Arc::clone(&shared), plan.clone()));
        }
    }
    let faults = rage(&estate, &shared, &plan, began).await;
    heal(&estate).await;
    shared.is_over.store(true, Ordering::SeqCst);
    while callers.join_next().await.is_some() {}
    let elapsed = began.elapsed();
    serve_all(&estate, &shared).await;
    Ok(judge(estate, &shared, faults, elapsed).await)
}

fn servers(lock: &Path) -> Vec<Fake> {
    let sole = |name: &str| {
        let place = lock.with_extension(name);
        fake(name)
            .before(vec![Step::HoldLock(place)])
            .tool("echo", Step::Echo)
            .tool("slow", vec![Step::WaitMs(400), Step::Echo])
    };
    let mut all: Vec<Fake> = ["sole-a", "sole-b", "sole-c"].map(sole).into();
    all.push(
        fake("far")
            .tool("echo", Step::Echo)
            .setting("on = \"node-0\""),
    );
    all
}

const SERVERS: [&str; 4] = ["sole-a", "sole-b", "sole-c", "far"];

async fn begin(
    programs: &Programs,
    nats: &NatsProgram,
    plan: &NodesPlan,
) -> Result<Estate, String> {
    let (nats, mut net) = if plan.has_machines {
        let machines = Machines::new(plan.nats + plan.nodes)?;
        let places = (0..plan.nats).map(|nth| machines.nats_place(nth));
        (nats.start_at(places.collect()), Net::Machines(machines))
    } else {
        (nats.start(plan.nats), Net::Relays(Vec::new()))
    };
    let mut houses = Vec::new();
    let mut lock = None;
    for nth in 0..plan.nodes {
        let (programs, urls) = match &mut net {
            Net::Machines(machines) => (machines.programs(plan.nats + nth, programs), nats.urls()),
            Net::Relays(links) => {
                let mut own = Vec::new();
                for port in nats.ports() {
                    own.push(Relay::start(port).await);
                }
                let urls = own.iter().map(Relay::url).collect();
                links.push(own);
                (programs.clone(), urls)
            }
        };
        let house = House::without_config(&programs).with_daemon();
        let lock = lock.get_or_insert_with(|| house.path("owner"));
        house.configure(&format!(
            "[cluster]\nnode = \"node-{nth}\"\nnats = {urls:?}\nkey = \"{KEY}\"\n"
        ));
        for server in servers(lock) {
            house.add(server);
        }
        house.cli(["daemon", "start"]).await.ended(0);
        houses.push(house);
    }
    for house in &houses {
        for server in SERVERS {
            until_served(house, server, HEALED_WITHIN)
                .await
                .expect("a server is served at the start");
        }
    }
    Ok(Estate { nats, houses, net })
}

/// Calls a server until it answers. An error is the last answer.
async fn until_served(house: &House, server: &str, within: Duration) -> Result<(), String> {
    let until = Instant::now() + within;
    loop {
        let told = house.cli(["call", &format!("{server}/echo")]).await;
        if told.code == Some(0) {
            return Ok(());
        }
        if Instant::now() >= until {
            return Err(format!("{}{}", told.stdout, told.stderr));
        }
        sleep(Duration::from_millis(300)).await;
    }
}

async fn call_on(client: Client, shared: Arc<Shared>, plan: NodesPlan) {
    let mut random = Random::of(plan.seed, usize::try_from(client.pid()).unwrap_or(0));
    while !shared.is_over.load(Ordering::SeqCst) {
        let id = shared.next.fetch_add(1, Ordering::SeqCst);
        if id >= plan.calls_max {
            return;
        }
        let server = random.pick(&SERVERS).expect("there are servers");
        let tool = if *server != "far" && random.below(50) == 0 {
            "slow"
        } else {
            "echo"
        };
        let input = json!({ "id": id });
        let expected = input.to_string();
        let call = json!({"name": "execute_dynamic_tool", "arguments":
            {"tool_name": format!("{server}/{tool}"), "tool_input": input}});
        let began = Instant::now();
        let (_, reply) = client.begin("tools/call", call).await;
        let Ok(reply) = timeout(ANSWERED_WITHIN, reply).await else {
            shared.fail(format!("call {id} of {server} has no answer"));
            continue;
        };
        let text = reply.text();
        let answer = if !reply.is_error() && text == expected {
            let elapsed = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            shared.times.lock().push(elapsed);
            Answer::Good
        } else if reply.is_error() && text.contains("The call did not run") {
            Answer::DidNotRun
        } else if reply.is_error() && text.contains("may have run") {
            Answer::MayHaveRun
        } else {
            shared.fail(format!("call {id} of {server}: {text}"));
            continue;
        };
        shared.answers.lock().insert(id, answer);
        if answer != Answer::Good {
            sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Causes faults until the time or the calls are over. Returns their counts.
async fn rage(
    estate: &Estate,
    shared: &Shared,
    plan: &NodesPlan,
    began: Instant,
) -> HashMap<&'static str, u32> {
    let mut random = Random::new(plan.seed);
    let mut counts = HashMap::new();
    loop {
        let is_over = || {
            began.elapsed() >= plan.length || shared.next.load(Ordering::SeqCst) >= plan.calls_max
        };
        let rest = plan.fault_every.unwrap_or(Duration::from_secs(1));
        let rest = rest / 2 + rest * u32::try_from(random.below(1_000)).unwrap_or(0) / 1_000;
        let until = Instant::now() + rest;
        while Instant::now() < until && !is_over() {
            sleep(Duration::from_millis(100)).await;
        }
        if is_over() {
            return counts;
        }
        if plan.fault_every.is_some() {
            let name = fault(estate, &mut random).await;
            *counts.entry(name).or_default() += 1;
        }
    }
}

async fn fault(estate: &Estate, random: &mut Random) -> &'static str {
    let node = random.below(estate.houses.len());
    let nats = random.below(estate.nats.ports().len());
    match random.below(6) {
        0 | 1 => {
            let status = estate.houses[node].status().await;
            if let Some(pid) = status["pid"].as_u64() {
                kill(u32::try_from(pid).expect("a process id fits"));
            }
            "daemons killed"
        }
        2 => {
            estate.nats.kill(nats);
            sleep(Duration::from_secs(1)).await;
            estate.nats.begin(nats);
            "NATS servers killed"
        }
        other => match &estate.net {
            Net::Machines(machines) => {
                let all = estate.nats.ports().len() + estate.houses.len();
                let apart: Vec<usize> = (0..all).filter(|_| random.below(3) == 0).collect();
                machines.part(&apart);
                sleep(Duration::from_secs(1 + random.below(24) as u64)).await;
                machines.part(&[]);
                "partitions"
            }
            Net::Relays(links) => disturb_links(&links[node], other, nats, random).await,
        },
    }
}

async fn disturb_links(
    links: &[Relay],
    fault: usize,
    nats: usize,
    random: &mut Random,
) -> &'static str {
    match fault {
        3 => {
            disturb(links, LinkMode::Cut, 1 + random.below(24) as u64).await;
            "nodes cut off"
        }
        4 => {
            disturb(links, LinkMode::Held, 1 + random.below(20) as u64).await;
            "nodes held"
        }
        _ => {
            links[nats].set(LinkMode::Slow);
            sleep(Duration::from_secs(3)).await;
            links[nats].set(LinkMode::Open);
            "links slowed"
        }
    }
}

/// Puts all links of a node into a mode for some seconds.
async fn disturb(links: &[Relay], mode: LinkMode, seconds: u64) {
    for link in links {
        link.set(mode);
    }
    sleep(Duration::from_secs(seconds)).await;
    for link in links {
        link.set(LinkMode::Open);
    }
}

async fn heal(estate: &Estate) {
    if let Net::Relays(links) = &estate.net {
        for link in links.iter().flatten() {
            link.set(LinkMode::Open);
        }
    }
    for house in &estate.houses {
        house.cli(["daemon", "start"]).await;
    }
}

async fn serve_all(estate: &Estate, shared: &Shared) {
    for (nth, house) in estate.houses.iter().enumerate() {
        for server in SERVERS {
            if let Err(why) = until_served(house, server, HEALED_WITHIN).await {
                shared.fail(format!(
                    "node {nth} does not serve {server} in the end: {why}"
                ));
            }
        }
    }
}

/// Counts the runs of each call, and the lines by which a server says that it had two owners.
fn count_runs(estate: &Estate) -> (HashMap<u64, u32>, usize) {
    let mut ran: HashMap<u64, u32> = HashMap::new();
    let mut doubles = 0;
    for house in &estate.houses {
        for server in SERVERS {
            for line in house.received(server) {
                doubles += usize::from(line.contains("two owners"));
                let message: Value = serde_json::from_str(&line).unwrap_or_default();
                if message["method"] == "tools/call"
                    && let Some(id) = message["params"]["arguments"]["id"].as_u64()
                {
                    *ran.entry(id).or_default() += 1;
                }
            }
        }
    }
    (ran, doubles)
}

async fn judge(
    estate: Estate,
    shared: &Shared,
    faults: HashMap<&'static str, u32>,
    elapsed: Duration,
) -> NodesOutcome {
    let (ran, doubles) = count_runs(&estate);
    let answers = std::mem::take(&mut *shared.answers.lock());
    let count = |answer| answers.values().filter(|it| **it == answer).count();
    let twice = ran.values().filter(|times| **times > 1).count();
    let times = |id: &u64| ran.get(id).copied().unwrap_or(0);
    let is_wrong = |(id, answer): &(&u64, &Answer)| match answer {
        Answer::Good => times(id) == 0,
        Answer::DidNotRun => times(id) > 0,
        Answer::MayHaveRun => false,
    };
    let wrong = answers.iter().filter(is_wrong).count();
    let mut left = 0;
    for house in estate.houses {
        let stopping = tokio::spawn(house.stops_clean());
        left += usize::from(stopping.await.is_err());
    }
    let mut milliseconds = std::mem::take(&mut *shared.times.lock());
    milliseconds.sort_unstable();
    let of = |part: usize| {
        milliseconds
            .get(milliseconds.len() * part / 100)
            .copied()
            .unwrap_or(0)
    };
    let failures = std::mem::take(&mut *shared.failures.lock());
    let mut text = format!(
        "{} calls in {:.0} s: {} good ({} ms median, {} ms p99), {} did not run, {} may have run\n",
        answers.len(),
        elapsed.as_secs_f64(),
        count(Answer::Good),
        of(50),
        of(99),
        count(Answer::DidNotRun),
        count(Answer::MayHaveRun),
    );
    let mut faults: Vec<_> = faults.into_iter().collect();
    faults.sort_unstable();
    for (name, times) in faults {
        let _ = writeln!(text, "{times} {name}");
    }
    let _ = writeln!(
        text,
        "unanswered or wrong {}, run twice {twice}, contradicted {wrong}, two owners {doubles}, nodes with \
         leftovers {left}",
        failures.len()
    );
    for failure in &failures {
        let _ = writeln!(text, "  {}", failure.chars().take(300).collect::<String>());
    }
    NodesOutcome {
        is_good: failures.is_empty() && twice + wrong + doubles + left == 0,
        text,
    }
}
