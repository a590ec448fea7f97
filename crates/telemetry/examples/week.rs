//! A week of simulated calls: what they take, what stays on disk, how soon it can be read.
//!
//! `cargo run --release -p telemetry --example week -- 1000000`

#![expect(clippy::print_stderr, reason = "figures for whoever runs it")]

use std::time::Instant;

use telemetry::{By, CallRecord, Event, Outcome, RecordedArguments, Recorder, RecorderSettings};

const AUDIT_BYTES_MAX: u64 = 64 << 20;

fn call(number: u64, begin_ms: u64, all: u64) -> CallRecord {
    CallRecord {
        at_ms: begin_ms + number * 7 * 86_400_000 / all,
        client: ["claude-code", "cursor", "codex"][usize::try_from(number % 3).unwrap_or(0)].into(),
        session: Some(number % 17),
        server: format!("server-{}", number % 20).into(),
        kind: "tool",
        name: format!("tool_{}", number % 211),
        decision: "allow",
        outcome: if number.is_multiple_of(50) {
            Outcome::of_code("timeout")
        } else {
            Outcome::OK
        },
        bytes_in: 120,
        bytes: 9_000,
        bytes_sent: 4_000,
        is_cut: number.is_multiple_of(9),
        micros: 800 + number % 90_000,
        arguments: RecordedArguments::Digest(bytes::Bytes::from_static(
            br#"{"path":"/a/b","limit":5}"#,
        )),
        ..CallRecord::default()
    }
}

fn main() -> std::io::Result<()> {
    let all: u64 = std::env::args()
        .nth(1)
        .and_then(|it| it.parse().ok())
        .unwrap_or(100_000);
    let folder = tempfile::tempdir()?;
    let begin_ms = 1_795_000_000_000;
    let recorder = Recorder::new(RecorderSettings {
        folder: folder.path().to_owned(),
        audit_bytes_max: AUDIT_BYTES_MAX,
        keeps_stats: true,
        hide: telemetry::Hide::new(|text| Some(text.to_owned())),
    });
    let (mut handing, began) = (std::time::Duration::ZERO, Instant::now());
    for number in 0..all {
        let record = Event::Call(Box::new(call(number, begin_ms, all)));
        let handed = Instant::now();
        recorder.record(record);
        handing += handed.elapsed();
        if number % 8_192 == 8_191 {
            recorder.flush();
        }
    }
    recorder.flush();
    let nanos = handing.as_nanos() / u128::from(all.max(1));
    eprintln!(
        "{all} calls in {:.1?}, {nanos} ns to hand one over",
        began.elapsed()
    );
    let size = |name: &str| -> std::io::Result<u64> {
        let files = std::fs::read_dir(folder.path().join(name))?;
        files.map(|file| Ok(file?.metadata()?.len())).sum()
    };
    eprintln!(
        "audit {} bytes, stats {} bytes",
        size("audit")?,
        size("stats")?
    );
    let began = Instant::now();
    let now = begin_ms + 7 * 86_400_000;
    let figures = telemetry::read_stats(&folder.path().join("stats"), By::Tool, 90, now)?;
    eprintln!(
        "stats of {} calls in {:.1?}",
        figures.total.calls,
        began.elapsed()
    );
    let began = Instant::now();
    let verified = telemetry::verify(&folder.path().join("audit"))?;
    eprintln!("{verified:?} in {:.1?}", began.elapsed());
    Ok(())
}
