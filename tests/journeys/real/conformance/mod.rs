//! The official conformance suite, its newest release and its newest candidate, against `proxy` in
//! front of a fake server with every feature.

mod client;
mod fixture;

use std::collections::{BTreeMap, BTreeSet};

use journeys::{
    bridge::Bridge,
    fake::Era,
    real_clients::{Checks, Suite},
};

use self::fixture::{SERVER, fixture};
use crate::{house, real_clients};

/// Scenarios that do not pass, with the reason.
const NOT_APPLICABLE: [(&str, &str); 12] = [
    (
        "json-schema-2020-12",
        "looks for a fourth tool in `tools/list`",
    ),
    (
        "http-custom-header-server-validation",
        "looks for a tool of ours whose arguments travel as headers; none of the three is one",
    ),
    ("tasks-lifecycle", TASKS),
    ("tasks-capability-negotiation", TASKS),
    ("tasks-wire-fields", TASKS),
    ("tasks-request-state-removal", TASKS),
    ("tasks-mrtr-input", TASKS),
    ("tasks-request-headers", TASKS),
    ("tasks-dispatch-and-envelope", TASKS),
    ("tasks-status-notifications", TASKS),
    ("tasks-required-task-error", TASKS),
    ("tasks-mrtr-composition", TASKS),
];

/// The same for the release.
const NOT_IN_THE_RELEASE: (&str, &str) = (
    "server-sse-polling",
    "its client names a revision whose clients take an event without data for a message",
);

const TASKS: &str = "an extension that we do not announce (interface, section 12)";

/// Single failing checks of scenarios that pass otherwise, and the reason why they do not apply.
const NOT_SAID: [(&str, &str); 1] = [(
    "sep-2575-server-sends-tools-list-changed-on-subscription",
    "our list of tools never changes, and is not announced to",
)];

/// Runs a list of scenarios. A bridge in front of the proxy translates each call of a tool into one
/// of `execute_dynamic_tool`, so that its result passed through the proxy. Every other request is
/// forwarded unchanged.
async fn run(suite: Suite, list: [&str; 2], era: Era) -> BTreeMap<String, Checks> {
    let clients = real_clients();
    let house = house([fixture(era)]);
    house.indexed().await;
    let proxy = house.site().await;
    let bridge = Bridge::to(proxy.address(), SERVER).await;
    let results = house.path("results");
    let url = bridge.url();
    let found = clients.conformance(suite, &url, list, &results).await;
    drop(bridge);
    proxy.stop().await;
    house.stops_clean().await;
    found
}

/// Checks that every scenario passes, or is known not to apply and fails.
#[track_caller]
fn check(found: &BTreeMap<String, Checks>, suite: Suite, at_least: usize) {
    let mut skipped = BTreeMap::from(NOT_APPLICABLE);
    skipped.extend((suite == Suite::Released).then_some(NOT_IN_THE_RELEASE));
    let unsaid = BTreeMap::from(NOT_SAID);
    let mut passed = 0;
    for (scenario, checks) in found {
        let bad = checks.bad.iter();
        let bad: Vec<_> = bad
            .filter(|(id, _)| !unsaid.contains_key(id.as_str()))
            .collect();
        let is_passed = bad.is_empty() && checks.passed > 0;
        if let Some(why) = skipped.get(scenario.as_str()) {
            assert!(!is_passed, "{scenario} passes, but should not: {why}");
        } else {
            assert!(is_passed, "{scenario}: {bad:#?}");
            passed += 1;
        }
    }
    assert!(passed >= at_least, "{passed} of at least {at_least} ran");
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn every_scenario_of_the_release_passes() {
    let found = run(Suite::Released, ["--suite", "all"], Era::Legacy).await;
    check(&found, Suite::Released, 30);
    let there = real_clients().scenarios(Suite::Released).await;
    let there: BTreeSet<&String> = there.iter().collect();
    assert_eq!(there, found.keys().collect(), "every scenario ran");
}

/// Servers of each era answer clients of each.
#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn what_2025_11_25_requires_passes_before_servers_of_both_eras() {
    let list = ["--requirements", "2025-11-25"];
    for era in [Era::Legacy, Era::Modern] {
        check(
            &run(Suite::Candidate, list, era).await,
            Suite::Candidate,
            32,
        );
    }
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn what_2026_07_28_requires_passes() {
    let list = ["--requirements", "2026-07-28"];
    let found = run(Suite::Candidate, list, Era::Modern).await;
    check(&found, Suite::Candidate, 38);
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn trial_of_extensions() {
    let clients = real_clients();
    let house = house([fixture::extensions()]);
    house.indexed().await;
    let proxy = house.site().await;
    let bridge = Bridge::to(proxy.address(), SERVER).await;
    let url = bridge.url();
    for scenario in clients.scenarios(Suite::Candidate).await {
        if scenario.starts_with("tasks-") || scenario.starts_with("sep-2640") {
            let results = house.path(&scenario);
            let found = clients
                .conformance(Suite::Candidate, &url, ["--scenario", &scenario], &results)
                .await;
            println!("{scenario}: {found:#?}");
        }
    }
    drop(bridge);
    proxy.stop().await;
    house.stops_clean().await;
}
