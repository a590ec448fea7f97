//! Fifty servers of every kind, thousands of calls, and SIGKILL at random.

use std::{
    collections::hash_map::RandomState,
    env,
    hash::{BuildHasher as _, Hasher as _},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use journeys::{
    client::Client,
    fake::Step,
    house::{Fake, House, fake},
    processes,
};
use serde_json::json;
use tokio::{
    task::JoinSet,
    time::{Instant, interval},
};

use crate::{house, real_servers, until};

const SERVERS: usize = 50;
const CLIENTS: usize = 4;
/// The number of concurrent calls per client.
const AT_ONCE: usize = 8;
/// The default total number of calls; overridden by `PROXY_STORM_CALLS`.
const CALLS: usize = 2_000;
/// The number of calls between two kills, so that a slow machine sees as many kills as a fast one.
const CALLS_A_KILL: usize = 40;
/// The interval at which the number of calls is checked.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// The maximum growth of a proxy's memory in the second half of its calls.
const GROWTH_MIB_MAX: i64 = 24;

/// Creates a server of each kind in turn.
fn server(number: usize) -> Fake {
    let plain = fake(&format!("s{number}")).tool("echo", Step::Echo);
    match number % 5 {
        0 => plain.under_shell(),
        1 => plain.deaf(),
        2 => plain.before(Step::Spawn),
        3 => plain.under_shell().deaf(),
        _ => plain,
    }
}

/// Creates a house of fifty servers; true if one of them is started by npx. Offline a fake replaces
/// it.
async fn crowded() -> (House, bool) {
    let house = house((1..SERVERS).map(server));
    let npx = (!cfg!(offline)).then(|| real_servers().everything_by_npx());
    let has_npx = npx.is_some();
    match npx {
        Some(npx) => house.add(npx),
        None => house.add(server(SERVERS)),
    }
    house.indexed().await;
    (house, has_npx)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_lost_and_nobody_stays() {
    let calls = env::var("PROXY_STORM_CALLS").map_or(CALLS, |calls| calls.parse().unwrap());
    let (house, has_npx) = crowded().await;
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(house.client().await);
    }
    let storm = Arc::new(Storm {
        clients,
        has_npx,
        tally: Tally::default(),
    });
    let began = Instant::now();
    let mut memory = Vec::new();
    for part in 1..=2 {
        tokio::select! {
            () = call_until(calls * part / 2, &storm) => {}
            () = kill_at_random(&house, &storm) => {}
        }
        memory.push(storm.memory());
    }
    let [right, lost, kills] = storm.tally.counts();
    say(&format!(
        "{calls} calls in {:.1?}: {right} right, {lost} lost to {kills} kills; MiB {memory:?}",
        began.elapsed()
    ));
    assert_eq!(right + lost, calls);
    assert!(kills > 0, "no process was killed");
    assert!(lost * 10 < calls, "{lost} of {calls} lost to {kills} kills");
    for (half, whole) in memory[0].iter().zip(&memory[1]) {
        assert!(whole - half < GROWTH_MIB_MAX, "MiB {memory:?}");
    }
    until("no zombie", || {
        let of = |client: &Client| processes::children(client.pid());
        let mut children = storm.clients.iter().flat_map(of);
        !children.any(|(_, is_dead)| is_dead)
    })
    .await;
    house.stops_clean().await;
}

struct Storm {
    clients: Vec<Client>,
    has_npx: bool,
    tally: Tally,
}

#[derive(Debug, Default)]
struct Tally {
    begun: AtomicUsize,
    right: AtomicUsize,
    /// The number of errors that the server was down, or died during the call.
    lost: AtomicUsize,
    kills: AtomicUsize,
}

impl Tally {
    fn counts(&self) -> [usize; 3] {
        [&self.right, &self.lost, &self.kills].map(|count| count.load(Ordering::SeqCst))
    }
}

impl Storm {
    /// Returns the memory of each proxy in MiB.
    fn memory(&self) -> Vec<i64> {
        let of = |client: &Client| processes::memory(client.pid()).unwrap();
        let mib = |bytes: u64| i64::try_from(bytes / 1024 / 1024).unwrap();
        self.clients.iter().map(of).map(mib).collect()
    }

    /// Calls a random server with a number and checks that the server returns it.
    async fn call(&self, client: &Client, number: usize) {
        let server = 1 + random(SERVERS);
        let (tool, input, right) = if server == SERVERS && self.has_npx {
            let right = format!("The sum of {number} and 1 is {}.", number + 1);
            (
                "npx/get-sum".to_owned(),
                json!({ "a": number, "b": 1 }),
                right,
            )
        } else {
            let input = json!({ "n": number });
            let right = input.to_string();
            (format!("s{server}/echo"), input, right)
        };
        let reply = client.execute(&tool, input).await;
        if reply.is_error() {
            let why = reply.bad();
            assert!(
                why.starts_with("error server_unavailable: "),
                "{tool}: {why}"
            );
            self.tally.lost.fetch_add(1, Ordering::SeqCst);
        } else {
            assert_eq!(reply.good(), right, "{tool}");
            self.tally.right.fetch_add(1, Ordering::SeqCst);
        }
    }
}

async fn call_until(calls: usize, storm: &Arc<Storm>) {
    let mut callers = JoinSet::new();
    for caller in 0..CLIENTS * AT_ONCE {
        let storm = Arc::clone(storm);
        callers.spawn(async move {
            let client = &storm.clients[caller % CLIENTS];
            let next = |begun| (begun < calls).then_some(begun + 1);
            let (order, begun) = (Ordering::SeqCst, &storm.tally.begun);
            while let Ok(number) = begun.fetch_update(order, order, next) {
                storm.call(client, number).await;
            }
        });
    }
    while let Some(caller) = callers.join_next().await {
        caller.unwrap();
    }
}

/// Kills servers, shells and sleeping children until the future is dropped, but no proxy.
async fn kill_at_random(house: &House, storm: &Storm) {
    let mut looks = interval(LOOK_EVERY);
    let mut next = storm.tally.begun.load(Ordering::SeqCst) + CALLS_A_KILL;
    loop {
        looks.tick().await;
        if storm.tally.begun.load(Ordering::SeqCst) < next {
            continue;
        }
        next += CALLS_A_KILL;
        let mut victims = house.processes();
        victims.retain(|victim| !storm.clients.iter().any(|it| it.pid() == victim.pid));
        if !victims.is_empty() {
            processes::kill(victims[random(victims.len())].pid);
            storm.tally.kills.fetch_add(1, Ordering::SeqCst);
        }
    }
}

fn random(below: usize) -> usize {
    let number = RandomState::new().build_hasher().finish();
    usize::try_from(number % below as u64).unwrap()
}

#[expect(
    clippy::print_stderr,
    reason = "the figures are for who runs the storm"
)]
fn say(text: &str) {
    eprintln!("storm: {text}");
}
