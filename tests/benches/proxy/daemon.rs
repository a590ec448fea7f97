//! (g) Time from the start of `serve` to its list of tools with a daemon: one that runs already,
//! and one that has to be started first.

use std::{path::Path, time::Instant};

use crate::{
    catalog::catalogs,
    figures::{Figures, Spread},
    house::House,
    peer::Peer,
};

const RUNS: usize = 60;
const WARM_UP: usize = 5;

const SERVERS: usize = 50;
const TOOLS: usize = 1_000;

pub(crate) fn run(proxy: &Path, figures: &mut Figures) {
    let house = House::new(proxy, &catalogs(SERVERS, TOOLS));
    house.let_servers_hang();
    let cold: Vec<f64> = (0..RUNS + WARM_UP)
        .map(|_| {
            house.stop_daemon();
            once(&house)
        })
        .collect();
    let warm: Vec<f64> = (0..RUNS + WARM_UP).map(|_| once(&house)).collect();
    house.stop_daemon();
    assert!(!house.has_started_one(), "a server was started");
    let what = format!("{SERVERS} servers, {TOOLS} tools");
    for (daemon, times, aim) in [("running", warm, 10.0), ("none yet", cold, 60.0)] {
        let listed = Spread::of(times[WARM_UP..].to_vec());
        let what = format!("daemon {daemon}, {what}");
        figures.row("daemon", &what, "ms", &[("tools/list", listed)]);
        figures.aim(format!("tools/list, {what}"), aim, listed.p50, "ms");
    }
}

/// Returns the milliseconds from the spawn of `serve` to the response.
fn once(house: &House) -> f64 {
    let mut command = house.serve_with_daemon();
    let began = Instant::now();
    let mut peer = Peer::start(&mut command);
    peer.initialize();
    peer.list_tools();
    let listed = began.elapsed().as_secs_f64() * 1e3;
    peer.end();
    listed
}
