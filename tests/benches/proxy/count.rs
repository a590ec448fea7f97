//! The instructions that `serve --standalone` executes, which valgrind's tool callgrind counts. Other load
//! on the machine hardly changes them, so a limit for each shows a small change.

use std::{fs, path::Path, process::Command};

use serde_json::json;

use crate::{
    catalog::queries,
    figures::Figures,
    house::{CALLED, House},
    peer::{Peer, PeerCall},
};

const SERVERS: usize = 50;
const TOOLS: usize = 1_000;

/// The counted work, and its limit in thousand instructions. A run that counts 5 % more fails. A change that
/// lowers a count lowers its limit as well.
const LIMITS: [(&str, f64); 5] = [
    ("start, `tools/list` and exit", 15_500.0),
    ("a small call", 106.0),
    ("a search", 30_400.0),
    ("1 MB, raw", 5_100.0),
    ("1 MB, cut", 35_000.0),
];

pub(crate) fn run(proxy: &Path, figures: &mut Figures) {
    let house = House::with_tools(proxy, SERVERS, TOOLS);
    let searches: Vec<PeerCall> = queries(60)
        .iter()
        .map(|query| PeerCall::of("search_tools", &json!({"query": query}).to_string()))
        .collect();
    let call = |tool: &str, options: &str| PeerCall::through(&format!("{CALLED}/{tool}"), options);
    let counted = [
        count(&house, &[]),
        count_each(&house, &vec![call("text_100", ""); 600], 100),
        count_each(&house, &searches, 10),
        count_each(&house, &vec![call("text_1000000", r#","raw":true"#); 12], 2),
        count_each(&house, &vec![call("text_1000000", ""); 12], 2),
    ];
    for ((what, limit), counted) in LIMITS.into_iter().zip(counted) {
        figures.number("count", what, counted / 1e3, "thousand");
        figures.limit(format!("instructions: {what}"), limit, counted / 1e3, "k");
    }
}

/// Returns the instructions of one call, after `warm` of the calls, whose costs are left out.
fn count_each(house: &House, calls: &[PeerCall], warm: usize) -> f64 {
    let (all, first) = (count(house, calls), count(house, &calls[..warm]));
    let counted = u32::try_from(calls.len() - warm).expect("there are few calls");
    (all - first) / f64::from(counted)
}

/// Returns the instructions of a process that answers these calls one after the other.
fn count(house: &House, calls: &[PeerCall]) -> f64 {
    let file = house.state().join("callgrind.out");
    let mut peer = Peer::ready(&mut under_callgrind(&house.serve_command(), &file));
    peer.list_tools();
    for call in calls {
        peer.ask(call);
    }
    peer.end();
    let text = fs::read_to_string(&file).expect("callgrind has written its counts");
    let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
    let total = total.and_then(|total| total.trim().parse().ok());
    total.expect("callgrind's file has a total")
}

/// Returns the same command below valgrind, which the package `valgrind` of a distribution installs.
fn under_callgrind(command: &Command, file: &Path) -> Command {
    let mut measured = Command::new("valgrind");
    measured.args(["--quiet", "--tool=callgrind"]);
    measured.arg(format!("--callgrind-out-file={}", file.display()));
    measured.arg(command.get_program()).args(command.get_args());
    measured.env_clear();
    measured.envs(
        command
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    measured
}
