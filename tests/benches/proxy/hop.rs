//! (a) The time that one hop adds, by the size of the response.

use std::path::Path;

use crate::{
    cores::OneCore,
    figures::{Figures, Spread, say},
    house::{CALLED, House, direct},
    peer::{Peer, PeerCall},
};

struct Case {
    what: &'static str,
    tool: &'static str,
    options: &'static str,
    rounds: u32,
    /// The number of calls of one side before the other's turn.
    batch: u32,
}

const RAW: &str = r#","raw":true"#;

const CASES: [Case; 8] = [
    case(SMALL, "text_100", "", 60, 50),
    case("10 KB text", "text_10000", "", 60, 40),
    case("120 KB text, raw", "text_120000", RAW, 60, 10),
    case(
        "120 KB structured + same text, raw",
        "same_120000",
        RAW,
        60,
        10,
    ),
    case(
        "120 KB structured alone, raw",
        "structured_120000",
        RAW,
        60,
        10,
    ),
    case(LARGE, "text_1000000", RAW, 60, 5),
    case(READ, "text_1000000", RAW, 60, 5),
    case("1 MB text, cut to the budget", "text_1000000", "", 20, 5),
];

const SMALL: &str = "100 B text";
const LARGE: &str = "1 MB text, raw";
/// The same with a client that parses the received JSON, on both sides.
const READ: &str = "1 MB text, raw, read by the client";

const fn case(
    what: &'static str,
    tool: &'static str,
    options: &'static str,
    rounds: u32,
    batch: u32,
) -> Case {
    Case {
        what,
        tool,
        options,
        rounds,
        batch,
    }
}

const WARM_UP: u32 = 300;

pub(crate) fn run(proxy: &Path, figures: &mut Figures) {
    let house = House::with_tools(proxy, 10, 1_000);
    measure_all(&house, "", figures);
    match OneCore::take() {
        Some(_one) => measure_all(&house, ", one core", figures),
        None => say("hop     on one core: not measured, there is no `taskset`"),
    }
}

fn measure_all(house: &House, on: &str, figures: &mut Figures) {
    let (mut server, mut client) = (direct(), house.serve());
    for case in &CASES {
        let Sides {
            direct,
            through,
            added,
        } = measure(case, &mut server, &mut client);
        let spreads = [("direct", direct), ("through", through), ("added", added)];
        let what = format!("{}{on}", case.what);
        figures.row("hop", &what, "us", &spreads);
        let percent = added.p50 / direct.p50 * 100.0;
        figures.number("hop", &format!("{what}: added"), percent, "%");
        let what = format!("a hop adds to {what}");
        match case.what {
            SMALL => figures.aim(what, 30.0, added.p50, "us"),
            LARGE | READ => figures.aim(what, 30.0, percent, "%"),
            _ => {}
        }
    }
    server.end();
    client.end();
}

struct Sides {
    direct: Spread,
    through: Spread,
    /// The difference of the medians of two neighbouring batches, so that drift cancels.
    added: Spread,
}

fn measure(case: &Case, server: &mut Peer, client: &mut Peer) -> Sides {
    let straight = PeerCall::direct(case.tool);
    let around = PeerCall::through(&format!("{CALLED}/{}", case.tool), case.options);
    prove(case, client.ask(&around));
    for _ in 0..WARM_UP.min(case.rounds * case.batch / 4) {
        server.ask(&straight);
        client.ask(&around);
    }
    let (mut direct, mut through, mut added) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..case.rounds {
        let time = if case.what == READ {
            Peer::time_reading
        } else {
            Peer::time
        };
        let batch = |peer: &mut Peer, call: &PeerCall| -> Vec<f64> {
            (0..case.batch).map(|_| time(peer, call)).collect()
        };
        let (near, far) = if round % 2 == 0 {
            let near = batch(server, &straight);
            (near, batch(client, &around))
        } else {
            let far = batch(client, &around);
            (batch(server, &straight), far)
        };
        added.push(Spread::of(far.clone()).p50 - Spread::of(near.clone()).p50);
        direct.extend(near);
        through.extend(far);
    }
    Sides {
        direct: Spread::of(direct),
        through: Spread::of(through),
        added: Spread::of(added),
    }
}

/// Checks that the response is a result of the expected size: a fast error would count as speed.
fn prove(case: &Case, answer: &[u8]) {
    let text = String::from_utf8_lossy(answer);
    let shown: String = text.chars().take(200).collect();
    assert!(!text.contains(r#""isError":true"#), "{shown}");
    let size = case.tool.rsplit('_').next().and_then(|it| it.parse().ok());
    let size: usize = size.expect("a tool is named after its size");
    let is_cut = case.options.is_empty() && size > 16_000;
    // A text that repeats the structured content is sent once.
    let least = if is_cut { 8_000 } else { size * 2 / 5 };
    assert!(answer.len() > least, "{} bytes: {shown}", answer.len());
}
