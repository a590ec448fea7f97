//! Audit logs of nodes that make each other's calls, and prove each other.

use std::{fs, time::Duration};

use journeys::{
    fake::Step,
    house::{House, fake},
};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{connected, nats, node};

/// The time after which the other node has written its line, with room for a busy machine.
const NOTED: Duration = Duration::from_mins(1);

async fn verified(house: &House) -> Value {
    let told = house.cli(["audit", "--verify", "--json"]).await;
    serde_json::from_str(&told.stdout).unwrap_or_default()
}

#[tokio::test]
async fn a_line_names_the_node_that_ran_a_call_and_a_cut_log_is_found_by_another_node() {
    let nats = nats(1);
    let far = || fake("far").tool("echo", Step::Echo).setting("on = \"one\"");
    let (one, two) = (node(&nats, "one", [far()]), node(&nats, "two", [far()]));
    connected(&[&one, &two]).await;
    for _ in 0..3 {
        two.cli(["call", "far/echo", "n=1"]).await.ended(0);
    }
    one.cli(["call", "far/echo", "n=1"]).await.ended(0);
    let ran_on = async |house: &House| {
        let told = house.cli(["audit", "--json"]).await;
        let lines = told.ended(0).lines();
        let lines = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines
            .map(|line| line["node"].as_str().map(str::to_owned))
            .collect::<Vec<_>>()
    };
    assert_eq!(ran_on(&two).await, vec![Some("one".to_owned()); 3]);
    assert_eq!(ran_on(&one).await, [None], "it ran here");
    let told = two.cli(["audit"]).await;
    assert!(told.stdout.contains("far/echo (on one)"), "{told:?}");

    let until = Instant::now() + NOTED;
    let known = loop {
        let known = verified(&two).await;
        if known["nodes"][0]["has"] == true {
            break known;
        }
        assert!(Instant::now() < until, "{known:#}");
        sleep(Duration::from_millis(500)).await;
    };
    assert_eq!(known["nodes"][0]["node"], "one");
    assert_eq!(known["nodes"][0]["line"], 3);
    assert_eq!(ran_on(&one).await, [None], "a line about a log is no call");
    assert_eq!(verified(&one).await["ok"], true);

    // The last call is removed, with everything on this machine that knows of it.
    two.cli(["daemon", "stop"]).await;
    let folder = two.state().join("audit");
    let log = folder.join("000000000001.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    fs::write(&log, &text[..text.find("{\"n\":3").unwrap()]).unwrap();
    fs::remove_file(folder.with_extension("anchor")).unwrap();
    two.cli(["daemon", "start"]).await.ended(0);
    two.cli(["call", "far/echo", "n=1"]).await.ended(0);
    two.cli(["daemon", "stop"]).await;
    let told = two.cli(["audit", "--verify"]).await;
    assert_eq!(told.code, Some(1), "{told:?}");
    assert!(
        told.stderr
            .contains("line 3 is not the one that node `one` has in its log"),
        "{told:?}"
    );
    one.stops_clean().await;
    two.stops_clean().await;
}
