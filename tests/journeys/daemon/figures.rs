//! *Call* and *error* mean the same everywhere (docs/figures.md).

use std::collections::BTreeMap;

use journeys::{
    client::{Client, DEADLINE},
    fake::Step,
    house::{Fake, House, fake},
    page::Tab,
    site::Site,
    web::Web,
};
use serde_json::{Value, json};
use tokio::time::{Duration, interval, timeout};

use crate::house_with_daemon;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Calls and errors by server; the name is empty for names that no server has.
type Counts = BTreeMap<String, (u64, u64)>;

fn any(mark: &std::path::Path) -> Fake {
    let safe = json!({"name": "read", "inputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": true}});
    let strict = json!({"name": "strict", "inputSchema": {"type": "object",
        "properties": {"n": {"type": "integer"}}, "required": ["n"]}});
    fake("any")
        .tool("echo", Step::Echo)
        .tool("fail", Step::ToolError("no".to_owned()))
        .tool("wipe", Step::Echo)
        .tool("hang", Step::UntilCancelled)
        .tool_as(strict, Step::Echo)
        .tool_as(safe, [Step::ExitOnce(mark.to_owned()), Step::Echo])
        .setting("retry_safe_calls = true")
}

/// Makes a call of every kind. Returns the expected counts.
async fn call_in_every_way(house: &House, client: &Client) -> Counts {
    let starts = house.starts("any");
    client.search("do echo").await.good();
    client.describe("any/echo").await.good();
    client.execute("any/echo", json!({})).await.good();
    // The server ends during this call, which is sent once more.
    client.execute("any/read", json!({})).await.good();
    assert_eq!(house.starts("any"), starts + 2);
    let echo = json!({"tool_name": "any/echo", "tool_input": {}});
    let many = json!({ "calls": [echo, echo] });
    client.execute("proxy/call_many", many).await.good();
    let hang = json!({"proxy/timeout_ms": 50});
    for (tool, input, code) in [
        ("any/fail", json!({}), "no"),
        ("any/wipe", json!({}), "error denied"),
        ("any/strict", json!({"n": "x"}), "error invalid_input"),
        ("any/hang", hang, "error timeout"),
        ("any/nonsense", json!({}), "error unknown_tool"),
        ("nowhere", json!({}), "error unknown_tool"),
        ("frail/act", json!({}), "error server_unavailable"),
    ] {
        let text = client.execute(tool, input).await.bad();
        assert!(text.starts_with(code), "{tool}: {text}");
    }
    let before = house.received_method("any", "tools/call").len();
    let arguments = json!({"tool_name": "any/hang", "tool_input": {}});
    let call = json!({"name": "execute_dynamic_tool", "arguments": arguments});
    let (id, _) = client.begin("tools/call", call).await;
    house.until_calls("any", before + 1).await;
    client.cancel(id).await;
    let counts = [
        ("", (1, 1)),
        ("any", (10, 6)),
        ("frail", (1, 1)),
        ("proxy", (1, 0)),
    ];
    counts.map(|(name, count)| (name.to_owned(), count)).into()
}

fn read_count(row: &Value, calls: &str, errors: &str) -> (u64, u64) {
    let number = |key: &str| row[key].as_u64().unwrap_or_else(|| panic!("{key}: {row}"));
    (number(calls), number(errors))
}

/// Reads the rows of the two servers by name.
fn of_servers(rows: &Value, calls: &str, errors: &str) -> Counts {
    let rows = rows.as_array().expect("a list of servers").iter();
    let row = |row: &Value| {
        let name = row["name"].as_str().unwrap_or_default().to_owned();
        (name, read_count(row, calls, errors))
    };
    rows.map(row).collect()
}

fn of_stats(figures: &Value) -> Counts {
    let line = |line: &Value| {
        let errors = line["errors"].as_object().expect("errors by code").values();
        let errors = errors.filter_map(Value::as_u64).sum();
        let calls = line["calls"].as_u64().unwrap_or_default();
        (
            line["name"].as_str().unwrap_or_default().to_owned(),
            (calls, errors),
        )
    };
    figures["lines"]
        .as_array()
        .expect("lines")
        .iter()
        .map(line)
        .collect()
}

async fn of_audit(house: &House) -> Counts {
    let mut counts = Counts::new();
    let output = house.cli(["audit", "--json"]).await;
    for line in output.ended(0).lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        if line["credential"].is_null() {
            let count = counts
                .entry(line["server"].as_str().unwrap().to_owned())
                .or_default();
            count.0 += 1;
            count.1 += u64::from(line["outcome"] != "ok");
        }
    }
    counts
}

async fn of_metrics(web: &Web) -> Counts {
    let mut counts = Counts::new();
    let text = web.ask("GET", "/metrics", "").await.text().await;
    for line in text.lines() {
        let Some(series) = line.strip_prefix("proxy_calls_total{server=\"") else {
            continue;
        };
        let (server, rest) = series.split_once('"').unwrap();
        let (labels, value) = rest.rsplit_once(' ').unwrap();
        let value: u64 = value.parse().unwrap();
        let count = counts.entry(server.to_owned()).or_default();
        count.0 += value;
        count.1 += if labels.contains("outcome=\"ok\"") {
            0
        } else {
            value
        };
    }
    counts
}

fn sum(counts: &Counts) -> (u64, u64) {
    let add = |all: (u64, u64), one: &(u64, u64)| (all.0 + one.0, all.1 + one.1);
    counts.values().fold((0, 0), add)
}

async fn until_counted(house: &House, calls: u64) -> Value {
    let mut looks = interval(Duration::from_millis(20));
    let counted = async {
        loop {
            looks.tick().await;
            let status = house.status().await;
            if status["calls"] == calls {
                return status;
            }
        }
    };
    let counted = timeout(DEADLINE, counted).await;
    counted.expect("all calls are counted in `status`")
}

#[tokio::test]
async fn a_day_of_calls_has_the_same_figures_everywhere() {
    let house = house_with_daemon([fake("frail").tool("act", Step::Echo)]);
    house.add(any(&house.path("ended-once")));
    house.configure_more(
        "[[rules]]\ndecision = \"deny\"\ntool = \"wipe\"\n[http]\nmetrics = true\ntokens = { one = \"${ONE_TOKEN}\" }",
    );
    house.indexed().await;
    house.rewrite(fake("frail").before(Step::Exit(4)));
    let mut command = house.command(["serve", "--http", "127.0.0.1:0"]);
    command.env("ONE_TOKEN", TOKEN);
    let site = Site::start(command).await;
    // A refused credential is in the log, and is no call.
    assert_eq!(site.web().ask("GET", "/metrics", "").await.status, 401);
    let web = site.web().with("authorization", &format!("Bearer {TOKEN}"));
    let client = house.client().await;
    let expected = call_in_every_way(&house, &client).await;
    let (calls, errors) = sum(&expected);

    let status = until_counted(&house, calls).await;
    assert_eq!(read_count(&status, "calls", "errors"), (calls, errors));
    let own: Counts = expected
        .clone()
        .into_iter()
        .filter(|(name, _)| ["any", "frail"].contains(&name.as_str()))
        .collect();
    assert_eq!(of_servers(&status["servers"], "calls", "errors"), own);
    let clients = status["clients"].as_array().unwrap();
    assert!(clients.iter().any(|it| it["calls"] == calls), "{status}");
    assert_eq!(of_metrics(&web).await, expected);
    assert_eq!(of_audit(&house).await, expected);
    let by_server = ["stats", "--by", "server", "--days", "2", "--json"];
    assert_eq!(of_stats(&house.cli(by_server).await.json()), expected);
    let servers = house.cli(["servers", "--json"]).await.json();
    assert_eq!(of_servers(&servers["servers"], "calls", "errors"), own);
    assert_eq!(
        of_servers(&servers["servers"], "calls_30_days", "errors_30_days"),
        own
    );

    let tab = Tab::open(&house).await;
    check_page(&tab, &expected, &own).await;

    // Without a daemon nothing was called since a start; the days stay.
    drop((tab, client.close().await));
    site.stop().await;
    house.cli(["daemon", "stop"]).await.ended(0);
    let alone = house.cli(["servers", "--json"]).await.json();
    assert_eq!(
        of_servers(&alone["servers"], "calls_30_days", "errors_30_days"),
        own
    );
    assert_eq!(
        sum(&of_servers(&alone["servers"], "calls", "errors")),
        (0, 0)
    );
    assert_eq!(of_audit(&house).await, expected);
    house.stops_clean().await;
}

/// Checks that every figure of the page is the expected one; `own` are those of configured servers.
async fn check_page(tab: &Tab, expected: &Counts, own: &Counts) {
    let (calls, errors) = sum(expected);
    let mut live = tab.live().await;
    live.until(|state| state["daemon"]["daemon"]["is_whole"] == true)
        .await;
    let state = &live.state;
    assert_eq!(
        read_count(&state["totals"]["totals"], "calls", "errors"),
        (calls, errors)
    );
    let minutes = state["minutes"].as_object().unwrap().values();
    let minutes = minutes
        .map(|it| read_count(it, "calls", "errors"))
        .enumerate();
    let minutes: Counts = minutes.map(|(at, count)| (at.to_string(), count)).collect();
    assert_eq!(sum(&minutes), (calls, errors));
    let rows = Value::Array(
        state["servers"]
            .as_object()
            .unwrap()
            .values()
            .cloned()
            .collect(),
    );
    assert_eq!(of_servers(&rows, "calls", "errors"), *own);
    let figures = tab.get("/api/v1/figures?by=server&days=2").await;
    assert_eq!(of_stats(&figures), *expected);
    let failed = tab.get("/api/v1/calls?failures=true&limit=100").await;
    let failed = failed["calls"].as_array().unwrap().iter();
    let failed = failed.filter(|it| it["credential"].is_null()).count();
    assert_eq!(failed as u64, errors);
}
