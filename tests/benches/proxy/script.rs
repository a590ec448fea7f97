//! (h) The cost of a script: its start, and each call that it makes.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use crate::{
    cores::OneCore,
    figures::{Figures, Spread, say},
    house::{CALLED, House, direct},
    peer::{Peer, PeerCall},
};

const ROUNDS: usize = 40;
const WARM_UP: usize = 5;

/// The number of calls of one script.
const CALLS: usize = 90;

/// The number of `serve` processes whose first script is timed.
const COLD: usize = 15;

/// Models take longer between two scripts: the next process is ready by then.
const PAUSE: Duration = Duration::from_millis(50);

pub(crate) fn run(proxy: &Path, figures: &mut Figures) {
    let house = House::with_tools(proxy, 10, 1_000);
    measure_starts(&house, figures);
    measure_calls(&house, "", figures);
    match OneCore::take() {
        Some(_one) => measure_calls(&house, ", one core", figures),
        None => say("script  on one core: not measured, there is no `taskset`"),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "no event loop is here; there is nothing to wait for"
)]
fn pause() {
    std::thread::sleep(PAUSE);
}

fn script(text: &str) -> PeerCall {
    let text = text.replace('"', "'");
    let input = format!(r#"{{"tool_name":"proxy/run_script","tool_input":{{"script":"{text}"}}}}"#);
    PeerCall::of("execute_dynamic_tool", &input)
}

/// Returns the milliseconds that the call takes; its response must contain this text.
fn time(client: &mut Peer, call: &PeerCall, expected: &str) -> f64 {
    let began = Instant::now();
    let answer = client.ask(call);
    let took = began.elapsed().as_secs_f64() * 1e3;
    let answer = String::from_utf8_lossy(answer);
    assert!(
        answer.contains(&format!("\"text\":\"{expected}\"")),
        "{answer}"
    );
    took
}

fn measure_starts(house: &House, figures: &mut Figures) {
    let (one, found) = (
        script("1"),
        PeerCall::of("search_tools", r#"{"query":"text"}"#),
    );
    let cold = (0..COLD).map(|_| {
        let mut client = house.serve();
        // The code that a session loads once does not belong to the start of a script.
        client.ask(&found);
        let took = time(&mut client, &one, "1");
        client.end();
        took
    });
    let cold = Spread::of(cold.collect());
    let mut client = house.serve();
    let mut warm = Vec::new();
    for round in 0..ROUNDS + WARM_UP {
        pause();
        let took = time(&mut client, &one, "1");
        if round >= WARM_UP {
            warm.push(took);
        }
    }
    client.end();
    let warm = Spread::of(warm);
    let spreads = [("warm", warm), ("cold", cold)];
    figures.row("script", "`1`, asked and answered", "ms", &spreads);
    figures.aim("a script, warm", 15.0, warm.p50, "ms");
    figures.aim("a script, the first of a session", 50.0, cold.p50, "ms");
}

/// Measures a call in a script: a script with many calls minus one with none, divided by their
/// number, beside the same call by a client of the proxy and by one of the server itself.
fn measure_calls(house: &House, on: &str, figures: &mut Figures) {
    let calls = format!("let n = 0; for (; n < {CALLS}; n++) await {CALLED}.text_100({{}}); n");
    let (none, many) = (script("0"), script(&calls));
    let through = PeerCall::through(&format!("{CALLED}/text_100"), "");
    let straight = PeerCall::direct("text_100");
    let (mut server, mut client) = (direct(), house.serve());
    let (mut within, mut around, mut near, mut added) = (vec![], vec![], vec![], vec![]);
    for round in 0..ROUNDS + WARM_UP {
        pause();
        let empty = time(&mut client, &none, "0");
        pause();
        let full = time(&mut client, &many, &CALLS.to_string());
        let batch = |peer: &mut Peer, call: &PeerCall| {
            Spread::of((0..CALLS).map(|_| peer.time(call)).collect()).p50
        };
        let by_client = batch(&mut client, &through);
        let by_server = batch(&mut server, &straight);
        let in_script = (full - empty) * 1e3 / f64::from(u32::try_from(CALLS).unwrap_or(1));
        if round >= WARM_UP {
            within.push(in_script);
            around.push(by_client);
            near.push(by_server);
            added.push(in_script - by_client);
        }
    }
    client.end();
    server.end();
    let added = Spread::of(added);
    let spreads = [
        ("direct", Spread::of(near)),
        ("through", Spread::of(around)),
        ("script", Spread::of(within)),
        ("added", added),
    ];
    figures.row("script", &format!("a call, 100 B{on}"), "us", &spreads);
    figures.aim(
        format!("a script adds to a call{on}"),
        150.0,
        added.p50,
        "us",
    );
}
