//! Regression test of search quality: every configuration on every set, against committed floors.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use registry::{MatchKind, Query};
use retrieval::score::{CONFIGURATIONS, Report};
use retrieval::set::{Catalogue, JudgedQuery, SetResult, Texts, lines, listed_tools};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Floor {
    recall_at_5: f64,
    ndcg_at_5: f64,
    false_refusals: f64,
    /// The maximum share of requests that get no tool at all; not checked for words alone, because
    /// a request may share no word with any tool.
    hidden: Option<f64>,
    /// Set only if the set has requests that no tool serves.
    false_offers: Option<f64>,
}

/// Floors by configuration, then by set.
type Floors = BTreeMap<String, BTreeMap<String, Floor>>;

#[test]
fn our_own_set_stays_above_its_floors() -> SetResult<()> {
    check("small", &own().join("small"))
}

#[test]
fn the_reference_set_stays_above_its_floors() -> SetResult<()> {
    check("reference", &own().join("reference"))
}

#[test]
#[cfg_attr(without_livemcp, ignore = "the set is not here: RETRIEVAL_SETS")]
fn the_livemcp_set_stays_above_its_floors() -> SetResult<()> {
    check(
        "livemcp",
        &PathBuf::from(env!("RETRIEVAL_SETS_FOUND")).join("livemcp"),
    )
}

#[test]
#[cfg_attr(without_toollinkos, ignore = "the set is not here: RETRIEVAL_SETS")]
fn the_toollinkos_set_stays_above_its_floors() -> SetResult<()> {
    check(
        "toollinkos",
        &PathBuf::from(env!("RETRIEVAL_SETS_FOUND")).join("toollinkos"),
    )
}

/// Requests in everyday words, over the tools of 63 real servers.
#[test]
#[cfg_attr(
    without_servers,
    ignore = "the definitions are not here: RETRIEVAL_SERVERS"
)]
fn requests_over_real_servers_stay_above_their_floors() -> SetResult<()> {
    let catalogue = Catalogue::of(&listed_tools(Path::new(env!("RETRIEVAL_SERVERS_FOUND")))?)?;
    check_on("own", &catalogue, &own().join("own"))
}

/// Each server is the only one, as for a new user: every request for the server has the right tool
/// on the first page, as a sure hit or a guess.
#[test]
#[cfg_attr(
    without_servers,
    ignore = "the definitions are not here: RETRIEVAL_SERVERS"
)]
fn plain_requests_of_one_popular_server_are_never_refused() -> SetResult<()> {
    let tools = listed_tools(Path::new(env!("RETRIEVAL_SERVERS_FOUND")))?;
    let requests = JudgedQuery::read(&own().join("plain/queries.jsonl"))?;
    let mut wrong = Vec::new();
    for of_server in requests.chunk_by(|a, b| a.kind == b.kind) {
        let alone = tools.iter().filter(|it| it["server"] == of_server[0].kind);
        let catalogue = Catalogue::of(&alone.cloned().collect::<Vec<_>>())?;
        let generation = catalogue.generation(Texts {
            meaning: true,
            requests: true,
        })?;
        for request in of_server {
            let found = generation.search(&Query::words(&request.text));
            let mut named = found.hits.iter().flat_map(|hit| catalogue.named(hit));
            let is_right = named.any(|name| request.relevant.contains(&name));
            if !is_right || found.kind != MatchKind::Ranked {
                wrong.push(&request.text);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
    Ok(())
}

fn check(name: &str, folder: &Path) -> SetResult<()> {
    let catalogue = Catalogue::of(&lines(&folder.join("tools.jsonl"))?)?;
    check_on(name, &catalogue, folder)
}

fn check_on(name: &str, catalogue: &Catalogue, folder: &Path) -> SetResult<()> {
    let floors: Floors = toml::from_str(&std::fs::read_to_string(own().join("floors.toml"))?)?;
    let requests = JudgedQuery::read(&folder.join("queries.jsonl"))?;
    let step = requests.len().div_ceil(REQUESTS_MAX);
    let requests: Vec<JudgedQuery> = requests.into_iter().step_by(step).collect();
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

/// Returns the scores below their floor: name, floor, value.
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
    let hidden = floor.hidden.map(|floor| ("hidden", floor, report.hidden));
    let most = [Some(refusals), offers, hidden].into_iter().flatten();
    let low = least.into_iter().filter(|(_, floor, is)| is < floor);
    let high = most.filter(|(_, floor, is)| is > floor);
    low.chain(high).collect()
}

/// The maximum number of requests of a set: of a larger set every n-th request is used, because the
/// whole set takes a minute.
const REQUESTS_MAX: usize = 320;

fn own() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
