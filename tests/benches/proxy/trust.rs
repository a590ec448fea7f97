//! The time that rules, the audit log and traces add to a call.

use std::path::Path;

use crate::{
    collector,
    cores::OneCore,
    figures::{Figures, Spread, say},
    house::{CALLED, House},
    peer::{Peer, PeerCall},
};

const TRACES: &str = "traces";

const ROUNDS: usize = 100;
const BATCH: usize = 50;

/// Rules that match no measured call; the last of them have to read its arguments.
const RULES: usize = 60;
const RULES_OF_ARGUMENTS: usize = 10;

pub(crate) fn run(proxy: &Path, figures: &mut Figures) {
    let with = House::with_tools(proxy, 10, 1_000);
    with.append(&rules());
    let traced = House::with_tools(proxy, 10, 1_000);
    let collector = collector::listen();
    traced.append(&format!(
        "[audit]\nkeep_mib = 0\n[traces]\nendpoint = \"{collector}\"\n"
    ));
    let without = House::with_tools(proxy, 10, 1_000);
    without.append("[audit]\nkeep_mib = 0\n");
    let rules = format!("{RULES} rules and the audit log");
    measure(&with, &without, &rules, figures);
    measure(&traced, &without, TRACES, figures);
    match OneCore::take() {
        Some(_one) => measure(&with, &without, &format!("{rules}, one core"), figures),
        None => say("trust   on one core: not measured, there is no `taskset`"),
    }
}

fn measure(with: &House, without: &House, what: &str, figures: &mut Figures) {
    let call = PeerCall::through(&format!("{CALLED}/text_100"), "");
    let (mut off, mut on_both) = (without.serve(), with.serve());
    let batch = |peer: &mut Peer| -> f64 {
        let times = (0..BATCH).map(|_| peer.time(&call)).collect();
        Spread::of(times).p50
    };
    for peer in [&mut off, &mut on_both] {
        let answer = String::from_utf8_lossy(peer.ask(&call)).into_owned();
        assert!(!answer.contains(r#""isError":true"#), "{answer}");
    }
    for _ in 0..10 {
        batch(&mut off);
        batch(&mut on_both);
    }
    let (mut near, mut far, mut added) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let (without, with) = if round % 2 == 0 {
            let without = batch(&mut off);
            (without, batch(&mut on_both))
        } else {
            let with = batch(&mut on_both);
            (batch(&mut off), with)
        };
        near.push(without);
        far.push(with);
        added.push(with - without);
    }
    let added = Spread::of(added);
    let spreads = [
        ("without", Spread::of(near)),
        ("with", Spread::of(far)),
        ("added", added),
    ];
    figures.row("trust", what, "us", &spreads);
    // Traces have no aim, because they are off by default.
    if what != TRACES {
        figures.aim(format!("{what}: added to a call"), 5.0, added.p50, "us");
    }
    off.end();
    on_both.end();
}

fn rules() -> String {
    let rule = |number: usize| {
        let what = if number < RULES - RULES_OF_ARGUMENTS {
            format!("server = \"other-{number}\"\ntool = [\"write_*\", \"move_*\"]")
        } else {
            format!("arguments = {{ \"/path\" = {{ outside = [\"/tmp/{number}\"] }} }}")
        };
        format!("[[rules]]\ndecision = \"deny\"\n{what}\n")
    };
    (0..RULES).map(rule).collect()
}
