use std::collections::{BTreeMap, BTreeSet};

use super::{TOOLS_MAX, Totals};
use crate::{
    exposition::Exposition,
    outcome::{CallCount, Outcome},
    record::{CallRecord, Event},
};

fn call(server: &str, name: &str, outcome: &'static str, micros: u64) -> Event {
    Event::Call(Box::new(CallRecord {
        server: server.into(),
        kind: "tool",
        name: name.to_owned(),
        decision: if outcome == "denied" { "ask" } else { "allow" },
        outcome: Outcome::of_code(outcome),
        bytes_in: 40,
        bytes: 4_000,
        bytes_sent: 400,
        is_cut: true,
        micros,
        ..CallRecord::default()
    }))
}

/// Parses the format strictly by its specification: each family has its two header lines before its
/// samples, no sample occurs twice, and the names of counters end in `_total`.
fn read(text: &str) -> BTreeMap<String, f64> {
    let mut families = BTreeSet::new();
    let mut samples = BTreeMap::new();
    let (mut family, mut kind) = (String::new(), "");
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            family = help.split_once(' ').unwrap().0.to_owned();
            assert!(families.insert(family.clone()), "{family} occurs twice");
            continue;
        }
        if let Some(of) = line.strip_prefix("# TYPE ") {
            let (name, of) = of.split_once(' ').unwrap();
            assert_eq!(name, family);
            kind = of;
            assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        let name = series.split('{').next().unwrap();
        let ends: &[&str] = match kind {
            "histogram" => &["_bucket", "_sum", "_count"],
            _ => &[""],
        };
        let is_of_family = ends
            .iter()
            .any(|end| name.strip_suffix(end) == Some(&family));
        assert!(is_of_family, "{name} does not belong to {family}");
        let value = value.parse().unwrap();
        assert!(
            samples.insert(series.to_owned(), value).is_none(),
            "{series}"
        );
    }
    samples
}

fn written(totals: &Totals) -> BTreeMap<String, f64> {
    let mut text = Exposition::default();
    totals.write(&mut text);
    read(&text.into_text())
}

#[test]
fn every_call_is_in_one_bucket_and_one_outcome() {
    let mut totals = Totals::default();
    let times = [0, 1_000, 1_001, 40_000, 9_000_000, u64::MAX / 2];
    for micros in times {
        totals.count(&call("notes", "read", "ok", micros));
    }
    totals.count(&call("notes", "write", "denied", 10));
    totals.count(&call("", "nonsense", "unknown_tool", 10));
    let samples = written(&totals);
    let bucket = |le: &str| {
        samples[&format!("proxy_call_duration_seconds_bucket{{server=\"notes\",le=\"{le}\"}}")]
    };
    let found = ["0.001", "0.0025", "0.05", "2.5", "10", "120", "+Inf"].map(bucket);
    assert!(
        found.into_iter().eq([3.0, 4.0, 5.0, 5.0, 6.0, 6.0, 7.0]),
        "{found:?}"
    );
    for (series, value) in [
        ("proxy_call_duration_seconds_count{server=\"notes\"}", 7.0),
        (
            "proxy_calls_total{server=\"notes\",kind=\"tool\",outcome=\"ok\"}",
            6.0,
        ),
        (
            "proxy_calls_total{server=\"\",kind=\"tool\",outcome=\"unknown_tool\"}",
            1.0,
        ),
        (
            "proxy_tool_calls_total{server=\"notes\",tool=\"write\"}",
            1.0,
        ),
        (
            "proxy_policy_decisions_total{decision=\"ask\",refused=\"true\"}",
            1.0,
        ),
        ("proxy_argument_tokens_total{server=\"notes\"}", 70.0),
        ("proxy_result_tokens_total{server=\"notes\"}", 700.0),
        ("proxy_results_cut_total{server=\"notes\"}", 7.0),
        ("proxy_tokens_saved_total{by=\"cuts\"}", 7_200.0),
    ] {
        assert_eq!(samples.get(series), Some(&value), "{series}");
    }
    assert!(!samples.keys().any(|series| series.contains("nonsense")));
}

#[test]
fn searches_scripts_and_sessions_are_counted() {
    let mut totals = Totals::default();
    for hits in [0, 3] {
        totals.count(&Event::Search {
            at_ms: 0,
            words: "fly home".to_owned(),
            hits,
        });
    }
    totals.count(&Event::Script {
        at_ms: 0,
        bytes_read: 4_000,
        bytes_sent: 400,
    });
    totals.count(&Event::Session {
        at_ms: 0,
        client: "cursor".into(),
        tokens_saved: 500,
    });
    let samples = written(&totals);
    for (series, value) in [
        ("proxy_searches_total", 2.0),
        ("proxy_searches_without_hits_total", 1.0),
        ("proxy_scripts_total", 1.0),
        ("proxy_sessions_total", 1.0),
        ("proxy_records_lost_total", 0.0),
        ("proxy_tokens_saved_total{by=\"scripts\"}", 900.0),
        ("proxy_tokens_saved_total{by=\"definitions\"}", 500.0),
    ] {
        assert_eq!(samples.get(series), Some(&value), "{series}");
    }
    let names: String = samples.into_keys().collect();
    assert!(!names.contains("fly") && !names.contains("cursor"));
}

#[test]
fn tools_without_number_are_no_series_without_number() {
    let mut totals = Totals::default();
    for tool in 0..TOOLS_MAX + 50 {
        let name = format!("tool {tool} {}", "x".repeat(500));
        totals.count(&call("notes", &name, "ok", 1));
    }
    let samples = written(&totals);
    let of_tools = |series: &&String| series.starts_with("proxy_tool_calls_total");
    assert_eq!(samples.keys().filter(of_tools).count(), TOOLS_MAX + 1);
    assert!(samples.keys().all(|series| series.len() < 200));
    let others = "proxy_tool_calls_total{server=\"others\",tool=\"others\"}";
    assert_eq!(samples.get(others), Some(&50.0));
}

#[test]
fn calls_are_counted_by_server_with_the_errors_among_them() {
    let mut totals = Totals::default();
    for (server, outcome) in [
        ("notes", "ok"),
        ("notes", "tool_error"),
        ("notes", "denied"),
        ("notes", "cancelled"),
        ("", "unknown_tool"),
    ] {
        totals.count(&call(server, "read", outcome, 10));
    }
    let count = |calls, errors| CallCount { calls, errors };
    let expected = [
        (String::new(), count(1, 1)),
        ("notes".to_owned(), count(4, 3)),
    ];
    assert_eq!(totals.count_by_server(), BTreeMap::from(expected));
}
