//! Spans of calls, received by a collector in the test.

use journeys::{
    client::Client,
    collector::Collector,
    fake::{FakeItem, Step},
    house::{House, fake},
    port::ReservedPort,
};
use serde_json::{Value, json};

use crate::{calling, house, house_with_daemon};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

async fn traced(url: &str) -> (House, Client) {
    let server = fake("any")
        .tool("echo", Step::Echo)
        .tool("fail", Step::ToolError("no".to_owned()))
        .tool("wait", Step::UntilCancelled)
        .script(|script| {
            let filled = json!({ "messages": [] });
            let prompt = json!({ "name": "greet" });
            script.prompts = vec![FakeItem::defined(prompt, Step::Filled(filled))];
        });
    let house = house([server]);
    configure(&house, url);
    house.indexed().await;
    let client = house.client().await;
    (house, client)
}

fn configure(house: &House, url: &str) {
    house.configure_more(&format!(
        "[traces]\nendpoint = \"{url}\"\nheaders = {{ X-Key = \"a-key-of-ours\" }}"
    ));
}

/// Calls `any/echo` below a span of the client.
async fn echo_below(client: &Client, flags: &str) {
    let mut params = calling("any/echo", &json!({ "key": "s3cr3t-argument" }));
    params["_meta"] = json!({ "traceparent": format!("00-{TRACE}-{PARENT}-{flags}") });
    let reply = client.request("tools/call", params).await;
    assert!(reply.good().contains("s3cr3t-argument"));
}

fn attribute(span: &Value, key: &str) -> Value {
    let all = span["attributes"].as_array().unwrap();
    let found = all.iter().find(|it| it["key"] == key);
    let value = found.map(|it| it["value"].as_object().unwrap().values().next().unwrap());
    value.cloned().unwrap_or_default()
}

#[journey]
async fn a_call_is_below_its_clients_span_and_its_server_below_the_call() {
    let collector = Collector::start().await;
    let (house, client) = traced(collector.url()).await;
    echo_below(&client, "01").await;
    let call = collector.until_span("tools/call echo").await;
    let request = collector
        .until_span("tools/call execute_dynamic_tool")
        .await;
    assert_eq!(
        (&request["traceId"], &request["parentSpanId"]),
        (&json!(TRACE), &json!(PARENT))
    );
    assert_eq!(
        (&call["traceId"], &call["parentSpanId"]),
        (&json!(TRACE), &request["spanId"])
    );
    assert_eq!((&request["kind"], &call["kind"]), (&json!(2), &json!(3)));
    let received = house.received_method("any", "tools/call");
    let passed = format!("00-{TRACE}-{}-01", call["spanId"].as_str().unwrap());
    assert_eq!(received[0]["params"]["_meta"]["traceparent"], passed);
    for (key, value) in [
        ("mcp.method.name", json!("tools/call")),
        ("gen_ai.tool.name", json!("echo")),
        ("proxy.server", json!("any")),
        ("proxy.outcome", json!("ok")),
        ("proxy.decision", json!("allow")),
        ("error.type", Value::Null),
    ] {
        assert_eq!(attribute(&call, key), value, "{key}");
    }
    let nanos = |key: &str| call[key].as_str().unwrap().parse::<u64>().unwrap();
    assert!(nanos("startTimeUnixNano") <= nanos("endTimeUnixNano"));

    // A trace that is not sampled is forwarded unchanged.
    echo_below(&client, "00").await;
    let received = house.received_method("any", "tools/call");
    let parent = &received[1]["params"]["_meta"]["traceparent"];
    assert_eq!(parent, &json!(format!("00-{TRACE}-{PARENT}-00")));

    client.search("do echo").await.good();
    client.execute("any/fail", json!({})).await;
    let failed = collector.until_span("tools/call fail").await;
    assert_eq!(attribute(&failed, "error.type"), "tool_error");
    assert_eq!(failed["status"]["code"], 2);
    assert_ne!(failed["traceId"], json!(TRACE));
    collector.until_span("tools/call search_tools").await;
    assert_eq!(collector.spans("tools/call echo").len(), 1);
    let came = collector.text();
    assert!(
        came.contains("a-key-of-ours") && !came.contains("s3cr3t"),
        "{came}"
    );
    house.stops_clean().await;
}

#[journey]
async fn a_script_is_above_the_calls_that_it_makes() {
    let collector = Collector::start().await;
    let (house, client) = traced(collector.url()).await;
    let script = "return await any.echo({ a: 1 });";
    client
        .execute("proxy/run_script", json!({ "script": script }))
        .await
        .good();
    let call = collector.until_span("tools/call echo").await;
    let run = collector.until_span("tools/call run_script").await;
    let request = collector
        .until_span("tools/call execute_dynamic_tool")
        .await;
    assert_eq!(
        (&call["parentSpanId"], &run["kind"]),
        (&run["spanId"], &json!(1))
    );
    assert_eq!(run["parentSpanId"], request["spanId"]);
    assert!(request["parentSpanId"].is_null() && request["traceId"] == call["traceId"]);
    house.stops_clean().await;
}

#[journey]
async fn a_call_that_is_taken_back_and_a_prompt_are_spans_too() {
    let collector = Collector::start().await;
    let (house, client) = traced(collector.url()).await;
    let (id, _reply) = client
        .begin("tools/call", calling("any/wait", &json!({})))
        .await;
    house.until_calls("any", 1).await;
    client.cancel(id).await;
    for name in ["tools/call wait", "tools/call execute_dynamic_tool"] {
        let span = collector.until_span(name).await;
        assert_eq!(attribute(&span, "error.type"), "cancelled", "{name}");
    }
    let got = client
        .request("prompts/get", json!({ "name": "greet" }))
        .await;
    got.into_result();
    let span = collector.until_span("prompts/get greet").await;
    assert_eq!(attribute(&span, "gen_ai.prompt.name"), "greet");
    let received = house.received_method("any", "prompts/get");
    let passed = ["traceId", "spanId"].map(|key| span[key].as_str().unwrap());
    let passed = format!("00-{}-{}-01", passed[0], passed[1]);
    assert_eq!(received[0]["params"]["_meta"]["traceparent"], passed);
    house.stops_clean().await;
}

#[journey(alone = "it asks the daemon about its spans")]
async fn calls_go_on_without_their_collector_and_doctor_says_so() {
    let gone = ReservedPort::new();
    let url = format!("http://{}", gone.address());
    let house = house_with_daemon([fake("any").tool("echo", Step::Echo)]);
    configure(&house, &url);
    house.indexed().await;
    let client = house.client().await;
    for _ in 0..3 {
        client.execute("any/echo", json!({})).await.good();
    }
    let told = async || {
        let status = house.cli(["status", "--json"]).await;
        let status: Value = serde_json::from_str(status.ended(0)).unwrap();
        status["daemons"][0]["traces"].clone()
    };
    let mut traces = told().await;
    let waiting = async {
        while traces["failure"].is_null() {
            tokio::task::yield_now().await;
            traces = told().await;
        }
    };
    client.within("a failed delivery", waiting).await;
    assert_eq!((&traces["to"], &traces["sent"]), (&json!(url), &json!(0)));
    let doctor = house.cli(["doctor", "--offline"]).await;
    let shown = &doctor.stdout;
    assert!(shown.contains(&format!("goes to {url}")), "{shown}");
    assert!(shown.contains("the last delivery failed"), "{shown}");
    assert!(!shown.contains("a-key-of-ours"), "{shown}");
    house.stops_clean().await;
}
