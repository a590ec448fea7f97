//! What a decision costs: 60 rules, a call that none of them fits, with and without a look at its
//! arguments.
//!
//! `cargo run --release -p policy --example cost`

#![expect(clippy::print_stderr, reason = "figures for whoever runs it")]

use std::{hint::black_box, time::Instant};

use policy::{Effects, Policy, Preset, RequestKind, Rule, Subject};
use serde_json::{Value, json};

const DECISIONS: u32 = 200_000;

fn main() {
    let rule = |number: u32| {
        let rule = json!({"decision": "deny", "client": "guest*", "server": format!("server-{number}"),
            "tool": ["delete_*", "drop_*"], "annotation": "destructive"});
        rule.as_object().cloned().unwrap_or_default()
    };
    let looking =
        json!({"decision": "ask", "server": "files", "arguments": {"/path": {"outside": "/srv"}}});
    let with_arguments = looking.as_object().cloned().unwrap_or_default();
    let read = |rule| Rule::read(&rule, None).ok();
    let plain: Vec<Rule> = (0..60).filter_map(|number| read(rule(number))).collect();
    let looks = (0..59).filter_map(|number| read(rule(number)));
    let looks: Vec<Rule> = looks.chain(read(with_arguments)).collect();
    for (name, rules) in [("names alone", plain), ("with a path", looks)] {
        let policy = Policy::new(Preset::Careful, rules);
        let arguments =
            json!({"path": "/srv/a/b.txt", "text": "x".repeat(200), "n": Value::from(5)});
        let arguments = arguments.to_string();
        let call = Subject {
            client: "claude-code",
            profiles: &[],
            server: "files",
            kind: RequestKind::Tool,
            name: "write_file",
            category: "files",
            effects: Effects::default(),
            arguments: &arguments,
        };
        let began = Instant::now();
        for _ in 0..DECISIONS {
            black_box(policy.decide(black_box(&call)));
        }
        let nanos = began.elapsed().as_nanos() / u128::from(DECISIONS);
        eprintln!(
            "{name}: {nanos} ns a decision, {} rules",
            policy.count_rules()
        );
    }
}
