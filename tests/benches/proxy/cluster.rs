//! (l) A call of a server at another node, beside one of the same server at the client's node.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use journeys::nats::NatsProgram;

use crate::{
    figures::{Figures, Spread},
    flight::rate,
    house::House,
    peer::{Peer, PeerCall},
};

const ROUNDS: u32 = 60;
const BATCH: u32 = 50;
const IN_FLIGHT_ROUNDS: u32 = 10;
const IN_FLIGHT_CALLS: u32 = 2_000;

/// The time within which two nodes know each other.
const CONNECTED: Duration = Duration::from_secs(30);

pub(crate) fn run(proxy: &Path, figures: &mut Figures) {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent();
    let nats = NatsProgram::ready(target.expect("it is in the target folder")).start(1);
    let nodes = ["a", "b"].map(|node| House::of_node(proxy, node, &nats.addresses()));
    let mut client = Peer::ready(&mut nodes[0].serve_with_daemon());
    let [near, far] = ["near", "far"].map(|it| PeerCall::through(&format!("{it}/text_100"), ""));
    let began = Instant::now();
    for call in [&near, &far] {
        while String::from_utf8_lossy(client.ask(call)).contains(r#""isError":true"#) {
            assert!(began.elapsed() < CONNECTED, "the nodes are not connected");
        }
    }
    let (mut here, mut there, mut added) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let mut batch = |call| -> Vec<f64> { (0..BATCH).map(|_| client.time(call)).collect() };
        let (one, other) = (batch(&near), batch(&far));
        added.push(Spread::of(other.clone()).p50 - Spread::of(one.clone()).p50);
        here.extend(one);
        there.extend(other);
    }
    let added = Spread::of(added);
    let spreads = [
        ("here", Spread::of(here)),
        ("there", Spread::of(there)),
        ("added", added),
    ];
    figures.row("cluster", "100 B text", "us", &spreads);
    figures.aim("a hop between nodes".to_owned(), 250.0, added.p50, "us");
    let mut rates = |call| {
        let rates = (0..IN_FLIGHT_ROUNDS).map(|_| rate(&mut client, call, IN_FLIGHT_CALLS));
        Spread::of(rates.collect())
    };
    let spreads = [("here", rates(&near)), ("there", rates(&far))];
    figures.row("cluster", "32 calls in flight, 100 B", "calls/s", &spreads);
    client.end();
    nodes.iter().for_each(House::stop_daemon);
}
