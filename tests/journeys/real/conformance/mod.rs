//! The official conformance suite, its newest release and its newest candidate, against `proxy` in
//! front of a fake server with every feature.

mod client;
mod fixture;

use std::collections::{BTreeMap, BTreeSet};

use journeys::{
    bridge::Bridge,
    fake::Era,
    house::{Fake, House},
    real_clients::{Checks, Suite},
};

use parking_lot::Mutex;

use self::fixture::{SERVER, fixture};
use crate::{futures_of, house, real_clients};

/// Scenarios that do not pass, with the reason.
const NOT_APPLICABLE: [(&str, &str); 5] = [
    (
        "json-schema-2020-12",
        "looks for a fourth tool in `tools/list`",
    ),
    (
        "http-custom-header-server-validation",
        "looks for a tool of ours whose arguments travel as headers; none of the three is one",
    ),
    ("sep-2640-skills-directory", "not announced (0040)"),
    ("tasks-status-notifications", "the suite skips it"),
    (
        "tasks-required-task-error",
        "a tool that requires a task works for every client (0040)",
    ),
];

/// The same for the release.
const NOT_IN_THE_RELEASE: (&str, &str) = (
    "server-sse-polling",
    "its client names a revision whose clients take an event without data for a message",
);

/// Single failing checks of scenarios that pass otherwise, and the reason why they do not apply.
const NOT_SAID: [(&str, &str); 3] = [
    (
        "sep-2575-server-sends-tools-list-changed-on-subscription",
        "our list of tools never changes, and is not announced to",
    ),
    (
        "sep-2640-skill-uri-scheme",
        "the URI of a skill names its server (0040)",
    ),
    (
        "sep-2663-tasks-get-status-failed",
        "a model reads the protocol error of a server as a tool error (interface, section 6)",
    ),
];

/// Runs a list of scenarios. A bridge in front of the proxy translates each call of a tool into one
/// of `execute_dynamic_tool`, so that its result passed through the proxy. Every other request is
/// forwarded unchanged.
async fn run(suite: Suite, list: [&str; 2], era: Era) -> BTreeMap<String, Checks> {
    run_in(house([fixture(era)]), suite, list).await
}

async fn run_in(house: House, suite: Suite, list: [&str; 2]) -> BTreeMap<String, Checks> {
    let clients = real_clients();
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
    let mut found = run(Suite::Candidate, list, Era::Modern).await;
    // Those of extensions need another server, and have a test of their own.
    found.retain(|scenario, _| !is_of_extension(scenario));
    check(&found, Suite::Candidate, 38);
}

fn is_of_extension(scenario: &str) -> bool {
    scenario.starts_with("tasks-") || scenario.starts_with("sep-2640-")
}

/// Runs the scenarios of one extension, each with a server of its own, some at one time.
async fn run_extensions(era: Era) -> BTreeMap<String, Checks> {
    let clients = real_clients();
    let all = clients.scenarios(Suite::Candidate).await;
    let of_extensions = all.into_iter().filter(|it| {
        let is_of_modern = it == "tasks-mrtr-input";
        is_of_extension(it) && is_of_modern == (era == Era::Modern)
    });
    let found = Mutex::new(BTreeMap::new());
    let running = of_extensions.map(|scenario| {
        let found = &found;
        async move {
            let list = ["--scenario", &scenario];
            let house = house::<Fake>([]);
            house.add(fixture::extensions(era, &house.state().join("tasks")));
            let run = run_in(house, Suite::Candidate, list).await;
            found.lock().extend(run);
        }
    });
    futures_of(running).await;
    found.into_inner()
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn skills_and_tasks_pass_where_we_have_them() {
    let mut found = run_extensions(Era::Legacy).await;
    found.extend(run_extensions(Era::Modern).await);
    check(&found, Suite::Candidate, 10);
}
