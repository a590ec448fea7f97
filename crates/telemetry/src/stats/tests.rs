use std::fs;

use super::{AskedWords, By, DAYS_KEPT, Stats, list, read};
use crate::{
    outcome::Outcome,
    record::{CallRecord, Event},
};

const DAY_MS: u64 = 86_400_000;

fn call(day: u64, client: &str, tool: &str, outcome: &'static str) -> Event {
    Event::Call(Box::new(CallRecord {
        at_ms: day * DAY_MS,
        client: client.into(),
        server: "notes".into(),
        kind: "tool",
        name: tool.to_owned(),
        outcome: Outcome::of_code(outcome),
        bytes_in: 40,
        bytes: 4_000,
        bytes_sent: 400,
        is_cut: true,
        micros: 1_000,
        ..CallRecord::default()
    }))
}

#[test]
fn what_several_processes_counted_is_added_up() {
    let folder = tempfile::tempdir().unwrap();
    for client in ["cursor", "codex"] {
        let mut stats = Stats::new(folder.path().into());
        stats.count(&call(20_000, client, "read", "ok"));
        stats.count(&call(20_001, client, "write", "timeout"));
        stats.count(&Event::Search {
            at_ms: 20_001 * DAY_MS,
            words: "fly\nhome".to_owned(),
            hits: 0,
        });
        stats.count(&Event::Session {
            at_ms: 20_001 * DAY_MS,
            client: client.into(),
            tokens_saved: 500,
        });
        for (tool, turn) in [("search_tools", 1), ("execute_dynamic_tool", 3)] {
            stats.count(&Event::FirstUse {
                at_ms: 20_001 * DAY_MS,
                client: "codex".into(),
                tool,
                turn,
            });
        }
        stats.count(&Event::Script {
            at_ms: 20_001 * DAY_MS,
            bytes_read: 4_000,
            bytes_sent: 400,
        });
        stats.write().unwrap();
        stats.write().unwrap();
    }
    let now = 20_001 * DAY_MS;
    let names = |by, days| {
        let figures = read(folder.path(), by, days, now).unwrap();
        let names = figures
            .lines
            .iter()
            .map(|it| format!("{} {}", it.name, it.calls));
        names.collect::<Vec<_>>().join(", ")
    };
    assert_eq!(names(By::Tool, 90), "notes/read 2, notes/write 2");
    assert_eq!(names(By::Tool, 1), "notes/write 2");
    assert_eq!(names(By::Client, 90), "codex 2, cursor 2");
    assert_eq!(names(By::Day, 90), "2024-10-04 2, 2024-10-05 2");
    let figures = read(folder.path(), By::Server, 90, now).unwrap();
    let total = &figures.total;
    assert_eq!(
        (total.calls, total.errors["timeout"], total.tokens_in),
        (4, 2, 40)
    );
    assert_eq!(
        (total.tokens_out, total.tokens_cut, total.cuts),
        (400, 3_600, 4)
    );
    // No percentile is greater than the longest time.
    assert_eq!((total.p50_us, total.p95_us), (Some(1_000), Some(1_000)));
    let expected = AskedWords {
        words: "fly home".to_owned(),
        count: 2,
    };
    assert_eq!(figures.searches.asked, [expected]);
    assert_eq!((figures.sessions, figures.tokens_saved), (2, 1_000));
    assert_eq!((figures.scripts, figures.script_tokens_saved), (2, 1_800));
    let uses = &figures.first_uses["codex"];
    let of = |tool: &str| (uses[tool].sessions, uses[tool].first, uses[tool].turns);
    assert_eq!(of("search_tools"), (2, 2, 2));
    assert_eq!(of("execute_dynamic_tool"), (2, 0, 6));
}

#[test]
fn ninety_days_of_bounded_size_are_all_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let mut stats = Stats::new(folder.path().into());
    for day in 0..DAYS_KEPT + 10 {
        stats.count(&call(20_000 + day, "cursor", "read", "ok"));
        stats.write().unwrap();
    }
    for tool in 0..5_000 {
        stats.count(&call(
            20_099,
            "cursor",
            &format!("tool {tool} {}", "x".repeat(500)),
            "ok",
        ));
    }
    stats.write().unwrap();
    let days = list(folder.path()).unwrap();
    assert_eq!(u64::try_from(days.len()).unwrap(), DAYS_KEPT);
    let largest = days
        .iter()
        .map(|(_, path)| fs::metadata(path).unwrap().len())
        .max();
    assert!(largest < Some(512 * 1024), "{largest:?}");
    let figures = read(folder.path(), By::Tool, 1, 20_099 * DAY_MS).unwrap();
    assert_eq!(figures.total.calls, 5_001);
    assert_eq!(figures.lines.first().unwrap().name, "others/others");
}
