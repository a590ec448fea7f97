//! Hostile scripts: none hangs, exhausts memory, escapes or reads forbidden files, and each gets an
//! error with the reason.

use journeys::fake::Step;
use journeys::house::fake;
use serde_json::json;

use crate::opened;

/// A script, and a part of its error.
const SCRIPTS: [(&str, &str); 42] = [
    // Endless scripts.
    ("for (;;) {}", "script_limit: time"),
    (
        "while (true) { try { for (;;) {} } catch {} }",
        "script_limit: time",
    ),
    ("for (;;) await null", "script_limit: time"),
    (
        "const f = () => Promise.resolve().then(f); await f()",
        "script_limit: time",
    ),
    ("await new Promise(() => {})", "is never settled"),
    ("await sleep(6e5)", "script_limit: time"),
    (
        "setTimeout(() => {}, 6e5); await sleep(6e5)",
        "script_limit: time",
    ),
    ("/^(a+)+$/.test('a'.repeat(60) + 'b')", "script_limit: time"),
    ("/(x+x+)+y/.exec('x'.repeat(60))", "script_limit: time"),
    (
        "const it = { get [Symbol.toStringTag]() { for (;;) {} } }; String(it)",
        "script_limit: time",
    ),
    ("return { toJSON() { for (;;) {} } }", "script_limit: time"),
    (
        "const p = new Proxy({}, { ownKeys() { for (;;) {} } }); Object.keys(p)",
        "script_limit: time",
    ),
    ("[1, 2].sort(() => { for (;;) {} })", "script_limit: time"),
    (
        "for (;;) { try { await fake.echo({}) } catch {} }",
        "script_limit: calls",
    ),
    (
        "await Promise.all(Array.from({ length: 5000 }, () => fake.echo({})))",
        "script_limit: calls",
    ),
    ("for (;;) await workspace.list()", "script_limit"),
    // Growing scripts.
    (
        "const a = []; for (;;) a.push(new Array(100000).fill(a))",
        "script_limit: memory",
    ),
    ("let s = 'x'; for (;;) s += s", "script_limit: memory"),
    ("'x'.repeat(2 ** 29)", "error script_"),
    ("new ArrayBuffer(2 ** 31)", "error script_"),
    (
        "const m = new Map(); for (let i = 0; ; i++) m.set(i, 'x'.repeat(1000) + i)",
        "script_limit: memory",
    ),
    ("JSON.stringify(Array(1e8).fill(0))", "error script_"),
    (
        "let o = {}; for (let i = 0; i < 1e5; i++) o = { o }; return o",
        "script_limit: depth",
    ),
    ("const f = (n) => f(n) + 1; f(0)", "script_limit: depth"),
    ("JSON.parse('['.repeat(1e6))", "error script_"),
    ("new RegExp('('.repeat(1e6))", "error script_"),
    ("for (;;) print('x'.repeat(1000000))", "error script_limit"),
    (
        "for (const n of 'abcde') print(n.repeat(17000000))",
        "script_limit: bytes out",
    ),
    (
        "for (const n of 'abcde') fake.echo({ x: n.repeat(17000000) })",
        "script_limit: bytes out",
    ),
    // Attempts to escape.
    ("eval('1')", "there is no eval"),
    ("new Function('return this')()", "there is no Function"),
    (
        "(async () => {}).constructor('return 1')()",
        "there is no Function",
    ),
    ("fetch('http://127.0.0.1/')", "there is no network"),
    (
        "require('child_process').execSync('id')",
        "there are no modules",
    ),
    ("import cp from 'child_process'", "there is no module"),
    ("await import('fs')", "error script_failed"),
    ("process.exit(1)", "there is no process"),
    (
        "globalThis.std.open('/etc/passwd', 'r')",
        "error script_failed",
    ),
    (
        "await workspace.read('/etc/passwd')",
        "no path in the workspace",
    ),
    (
        "await workspace.write('../../../x', 'x')",
        "no path in the workspace",
    ),
    (
        "await tools['other-session']['x']({})",
        "error script_failed",
    ),
    (
        "await proxy.run_script({ script: 'for (;;) {}' })",
        "a script cannot run another",
    ),
];

#[tokio::test]
async fn none_hangs_grows_or_escapes_and_each_is_told_why() {
    let (house, client) = opened([fake("fake").tool("echo", Step::Echo)]).await;
    let mut wrong = Vec::new();
    for (script, expected) in SCRIPTS {
        let mut input = json!({ "script": script });
        // The other scripts reach their own limits before this timeout, even on a slow machine.
        if expected.ends_with("time") {
            input["timeout_ms"] = json!(300);
        }
        let text = client.execute("proxy/run_script", input).await.bad();
        if !text.contains(expected) {
            wrong.push(format!("{script}: {text}"));
        }
        assert!(text.len() < 3_000, "{script}: {} bytes", text.len());
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let good = json!({ "script": "(await fake.echo({ n: 1 })).n" });
    assert_eq!(client.execute("proxy/run_script", good).await.good(), "1");
    house.stops_clean().await;
}
