//! Search keeps what it reaches: every configuration on every set, against committed floors.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use retrieval::score::{CONFIGURATIONS, Report};
use retrieval::set::{Catalogue, Outcome, Request, lines, listed_tools};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Floor {
    recall_at_5: f64,
    ndcg_at_5: f64,
    false_refusals: f64,
    /// Only where the set has requests that no tool serves.
    false_offers: Option<f64>,
}

/// By configuration, by set.
type Floors = BTreeMap<String, BTreeMap<String, Floor>>;

#[test]
fn our_own_set_stays_above_its_floors() -> Outcome<()> {
    check("small", &own().join("small"))
}

#[test]
fn the_sets_of_others_stay_above_their_floors() -> Outcome<()> {
    check("reference", &own().join("reference"))?;
    let (there, missing): (Vec<&str>, Vec<&str>) = BESIDE
        .iter()
        .partition(|name| beside().join(name).join("queries.jsonl").exists());
    for name in &there {
        check(name, &beside().join(name))?;
    }
    // Not `eprintln!`: nobody would see it while the test passes.
    writeln!(
        std::io::stderr(),
        "retrieval: beside `small` and `reference` checked {there:?}, not here {missing:?}"
    )?;
    Ok(())
}

/// What people say, over the tools of 63 real servers.
#[test]
fn requests_over_real_servers_stay_above_their_floors() -> Outcome<()> {
    let snapshots = own().join("../../../shared/servers/snapshots");
    if !snapshots.exists() {
        writeln!(std::io::stderr(), "retrieval: {OVER_SERVERS:?} not checked")?;
        return Ok(());
    }
    let catalogue = Catalogue::of(&listed_tools(&snapshots)?)?;
    for name in OVER_SERVERS {
        check_on(name, &catalogue, &own().join(name))?;
    }
    Ok(())
}

fn check(name: &str, folder: &Path) -> Outcome<()> {
    let catalogue = Catalogue::of(&lines(&folder.join("tools.jsonl"))?)?;
    check_on(name, &catalogue, folder)
}

fn check_on(name: &str, catalogue: &Catalogue, folder: &Path) -> Outcome<()> {
    let floors: Floors = toml::from_str(&std::fs::read_to_string(own().join("floors.toml"))?)?;
    let requests = Request::read(&folder.join("queries.jsonl"))?;
    let step = requests.len().div_ceil(REQUESTS_MAX);
    let requests: Vec<Request> = requests.into_iter().step_by(step).collect();
    for configuration in CONFIGURATIONS {
        let of = configuration.name;
        let floor = floors.get(of).and_then(|sets| sets.get(name));
        let floor = floor.ok_or_else(|| format!("no floor for {of} on {name}"))?;
        let report = Report::of(catalogue, &requests, configuration, 0)?;
        let fallen = fallen(floor, &report);
        assert!(fallen.is_empty(), "{of} on {name}: {fallen:?}");
    }
    Ok(())
}

/// What is worse than its floor: its name, the floor, what it is.
fn fallen(floor: &Floor, report: &Report) -> Vec<(&'static str, f64, f64)> {
    let [_, _, recall_at_5, _] = report.marks.recall;
    let offers = floor.false_offers.zip(report.false_offers);
    let least = [
        ("recall_at_5", floor.recall_at_5, recall_at_5),
        ("ndcg_at_5", floor.ndcg_at_5, report.marks.ndcg_at_5),
    ];
    let refusals = (
        "false_refusals",
        floor.false_refusals,
        report.false_refusals,
    );
    let offers = offers.map(|(floor, offers)| ("false_offers", floor, offers));
    let most = std::iter::once(refusals).chain(offers);
    let low = least.into_iter().filter(|(_, floor, is)| is < floor);
    let high = most.filter(|(_, floor, is)| is > floor);
    low.chain(high).collect()
}

/// Of a larger set every n-th is asked: the whole of it takes a minute.
const REQUESTS_MAX: usize = 320;

/// Requests over the tools of real servers, which are not in the repository.
const OVER_SERVERS: [&str; 2] = ["own", "languages"];

/// Sets that are not in the repository.
const BESIDE: [&str; 2] = ["livemcp", "toollinkos"];

fn own() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn beside() -> PathBuf {
    let shared = own().join("../../../shared/retrieval/dev");
    std::env::var_os("RETRIEVAL_SETS").map_or(shared, PathBuf::from)
}
