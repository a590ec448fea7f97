//! Requests of servers to clients: they reach only the client whose call is in progress.

use journeys::{
    client::{Client, ROUNDS_MAX},
    fake::{Era, LEGACY_VERSION, META_CAPABILITIES, Step},
    house::{House, fake},
    processes::kill,
};
use serde_json::{Value, json};

use crate::house;

pub(crate) const ELICIT: &str = "elicitation/create";

fn curious() -> House {
    let sample = Step::AskAndTell {
        method: "sampling/createMessage".to_owned(),
        params: json!({"messages": [], "maxTokens": 5, "odd": 1.0}),
    };
    house([fake("curious")
        .tool("ask", Step::elicit("Sure?"))
        .tool("sample", sample)
        .tool("echo", Step::Echo)])
}

pub(crate) async fn client_with(house: &House, capabilities: Value) -> Client {
    let client = house.serve();
    client.initialize_with(LEGACY_VERSION, capabilities).await;
    client
}

/// Returns the answer of a user.
pub(crate) fn says(text: &str) -> Value {
    json!({"action": "accept", "content": {"text": text}})
}

fn ask() -> Value {
    json!({"name": "execute_dynamic_tool",
        "arguments": {"tool_name": "curious/ask", "tool_input": {}}})
}

#[journey]
async fn a_question_reaches_the_client_and_its_answer_the_server() {
    let house = curious();
    house.indexed().await;
    let all = json!({"elicitation": {}, "sampling": {"tools": {}}});
    let client = client_with(&house, all).await;
    client.answers(ELICIT, says("yes"));
    let told = client.execute("curious/ask", json!({})).await.good();
    assert_eq!(serde_json::from_str::<Value>(&told).unwrap(), says("yes"));
    let asked = client.next(ELICIT).await;
    assert_eq!(asked["params"]["message"], "[curious] Sure?");
    assert!(asked["params"]["requestedSchema"]["properties"]["text"].is_object());

    let message = json!({"role": "assistant", "content": {"type": "text", "text": "Hm."}});
    client.answers("sampling/createMessage", message.clone());
    let told = client.execute("curious/sample", json!({})).await.good();
    assert_eq!(serde_json::from_str::<Value>(&told).unwrap(), message);
    let asked = client.next("sampling/createMessage").await;
    assert_eq!(asked["params"]["odd"].to_string(), "1.0");
    let seen = house.received_method("curious", "initialize");
    let announced = &seen[0]["params"]["capabilities"];
    assert!(announced["elicitation"]["url"].is_object(), "{announced}");
    assert!(announced["sampling"]["tools"].is_object() && announced["roots"].is_null());
    house.stops_clean().await;
}

#[journey]
async fn what_a_client_cannot_take_is_refused_and_its_model_is_told() {
    let house = curious();
    house.indexed().await;
    let client = client_with(&house, json!({"roots": {}})).await;
    let told = client.execute("curious/ask", json!({})).await.good();
    assert!(
        told.contains("-32601") && told.contains("does not offer elicitation"),
        "{told}"
    );
    assert!(
        told.ends_with(
            "[proxy: curious asked for elicitation/create, which this client does not offer]"
        ),
        "{told}"
    );
    let declined = house
        .received("curious")
        .iter()
        .any(|it| it.contains("decline"));
    assert!(!declined, "the proxy does not answer for the user");
    house.stops_clean().await;
}

/// A question on a pipe does not name its call, so calls of two clients are serialized once a
/// server has asked a question.
#[journey]
async fn two_clients_are_asked_one_after_another_and_each_its_own() {
    let house = curious();
    house.indexed().await;
    let can = json!({"elicitation": {"form": {}, "url": {}}});
    let first = client_with(&house, can.clone()).await;
    let second = client_with(&house, can).await;
    for client in [&first, &second] {
        client.holds_back(ELICIT);
    }
    let (_, of_first) = first.begin("tools/call", ask()).await;
    let question = first.next(ELICIT).await;
    let (_, of_second) = second.begin("tools/call", ask()).await;
    first.answer(&question, says("first")).await;
    assert!(of_first.await.good().contains("first"));
    let question = second.next(ELICIT).await;
    second.answer(&question, says("second")).await;
    assert!(of_second.await.good().contains("second"));
    house.stops_clean().await;
}

#[journey]
async fn a_question_ends_with_its_call_and_a_late_answer_harms_nobody() {
    let house = curious();
    house.indexed().await;
    let client = client_with(&house, json!({"elicitation": {}})).await;
    client.holds_back(ELICIT);
    let (call, _reply) = client.begin("tools/call", ask()).await;
    let question = client.next(ELICIT).await;
    client.cancel(call).await;
    let taken_back = client.next("notifications/cancelled").await;
    assert_eq!(taken_back["params"]["requestId"], question["id"]);
    client.answer(&question, says("late")).await;
    house
        .until_received("curious", |line| line.contains("the call is over"))
        .await;
    client.execute("curious/echo", json!({})).await.good();
    house.stops_clean().await;
}

#[journey]
async fn a_server_that_dies_takes_its_question_along() {
    let house = curious();
    house.indexed().await;
    let client = client_with(&house, json!({"elicitation": {}})).await;
    client.holds_back(ELICIT);
    let (_, reply) = client.begin("tools/call", ask()).await;
    let question = client.next(ELICIT).await;
    kill(house.pids("curious")[0]);
    let why = reply.await.bad();
    assert!(
        why.starts_with("error server_unavailable: curious"),
        "{why}"
    );
    let taken_back = client.next("notifications/cancelled").await;
    assert_eq!(taken_back["params"]["requestId"], question["id"]);
    client.answer(&question, says("late")).await;
    client.answers(ELICIT, says("yes"));
    let told = client.execute("curious/ask", json!({})).await.good();
    assert_eq!(serde_json::from_str::<Value>(&told).unwrap(), says("yes"));
    house.stops_clean().await;
}

#[journey]
async fn a_client_that_dies_while_it_is_asked_keeps_nobody_waiting() {
    let house = curious();
    house.indexed().await;
    let can = json!({"elicitation": {}});
    let (gone, other) = (
        client_with(&house, can.clone()).await,
        client_with(&house, can).await,
    );
    gone.holds_back(ELICIT);
    let (_, _reply) = gone.begin("tools/call", ask()).await;
    gone.next(ELICIT).await;
    other.answers(ELICIT, says("mine"));
    let (_, reply) = other.begin("tools/call", ask()).await;
    gone.kill().await;
    let told = reply.await.good();
    assert_eq!(serde_json::from_str::<Value>(&told).unwrap(), says("mine"));
    house.stops_clean().await;
}

#[journey(alone = "it needs a shared server")]
async fn a_call_that_waits_for_another_clients_answer_says_so() {
    let house = curious().with_daemon();
    house.indexed().await;
    let can = json!({"elicitation": {}});
    let (asked, other) = (
        client_with(&house, can.clone()).await,
        client_with(&house, can).await,
    );
    asked.holds_back(ELICIT);
    let (_, answered) = asked.begin("tools/call", ask()).await;
    let question = asked.next(ELICIT).await;
    let input = json!({"proxy/timeout_ms": 300});
    let told = other.execute("curious/ask", input).await.bad();
    let waits = "waits for an answer that journeys is asked for";
    assert!(told.contains(waits), "{told}");
    other.answers(ELICIT, says("mine"));
    let (_, waiting) = other.begin("tools/call", ask()).await;
    let status = async {
        loop {
            let status = house.cli(["status"]).await;
            let told = status.ended(0);
            if told.contains("calls of other clients wait for the answer") {
                return told.to_owned();
            }
        }
    };
    let told = other.within("status", status).await;
    assert!(told.contains(&format!("curious {waits}")), "{told}");
    // While a question is open, other calls of the same client proceed, even if calls of other
    // clients wait.
    let told = asked.execute("curious/echo", json!({"n": 1})).await.good();
    assert_eq!(told, r#"{"n":1}"#);
    asked.answer(&question, says("at last")).await;
    assert!(answered.await.good().contains("at last"));
    assert!(waiting.await.good().contains("mine"));
    house.stops_clean().await;
}

/// Creates a server with a tool that asks late, and two that return on request.
fn late(house: &House) -> journeys::house::Fake {
    let slow = |gate: &str| {
        [
            Step::progress(1, 2),
            Step::UntilExists(house.path(gate)),
            Step::text("done"),
        ]
    };
    let ask = [
        Step::progress(1, 2),
        Step::UntilExists(house.path("ask-now")),
        Step::elicit("Sure?"),
    ];
    fake("late")
        .tool("first", slow("first-ends"))
        .tool("ask", ask)
        .tool("last", slow("last-ends"))
}

#[journey(alone = "one process serves HTTP in both cases")]
async fn over_http_a_question_waits_for_its_answer_though_other_calls_end() {
    let house = house::<journeys::house::Fake>([]);
    house.add(late(&house));
    house.indexed().await;
    let site = house.site().await;
    let can = json!({"elicitation": {}});
    let client = site
        .web()
        .initialize_with("asked", LEGACY_VERSION, can)
        .await;
    let begin = async |tool: &str| {
        let mut params = crate::calling(tool, &json!({}));
        params["_meta"] = json!({ "progressToken": tool });
        let (id, mut stream) = client.send("tools/call", params).await;
        assert_eq!(stream.message().await["params"]["progressToken"], tool);
        (id, stream)
    };
    let (_, mut first) = begin("late/first").await;
    let (asks, mut asking) = begin("late/ask").await;
    let (_, mut last) = begin("late/last").await;
    house.write("ask-now", "");
    // The question may belong to any of the three calls.
    let question = tokio::select! {
        question = first.message() => question,
        question = asking.message() => question,
        question = last.message() => question,
    };
    assert_eq!(question["method"], ELICIT);
    for (gate, mut stream) in [("first-ends", first), ("last-ends", last)] {
        house.write(gate, "");
        while stream.event().await.is_some() {}
    }
    let said = json!({"jsonrpc": "2.0", "id": question["id"], "result": says("yes")});
    assert_eq!(client.post(said.to_string()).await.status, 202);
    let reply = asking.message().await;
    assert_eq!(reply["id"], asks);
    let text = reply["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), says("yes"));
    site.stop().await;
    house.stops_clean().await;
}

#[journey(alone = "one process serves HTTP in both cases")]
async fn over_http_a_client_that_dies_while_it_is_asked_lets_the_others_in() {
    let house = curious();
    house.indexed().await;
    let site = house.site().await;
    let can = json!({"elicitation": {}});
    let dies = site
        .web()
        .initialize_with("dies", LEGACY_VERSION, can.clone())
        .await;
    let (_, mut stream) = dies.send("tools/call", ask()).await;
    assert_eq!(stream.message().await["method"], ELICIT);
    drop(stream);
    let other = site
        .web()
        .initialize_with("other", LEGACY_VERSION, can)
        .await;
    let (_, mut answer) = other.send("tools/call", ask()).await;
    let question = answer.message().await;
    let said = json!({"jsonrpc": "2.0", "id": question["id"], "result": says("mine")});
    assert_eq!(other.post(said.to_string()).await.status, 202);
    let told = answer.reply().await.good();
    assert_eq!(serde_json::from_str::<Value>(&told).unwrap(), says("mine"));
    site.stop().await;
    house.stops_clean().await;
}

#[journey(alone = "one process serves HTTP in both cases")]
async fn over_http_a_question_comes_on_the_stream_of_its_call() {
    let house = curious();
    house.indexed().await;
    let site = house.site().await;
    let can = json!({"elicitation": {}});
    let client = site
        .web()
        .initialize_with("asked", LEGACY_VERSION, can)
        .await;
    let (id, mut answer) = client.send("tools/call", ask()).await;
    let question = answer.message().await;
    assert_eq!(question["method"], ELICIT);
    let said = json!({"jsonrpc": "2.0", "id": question["id"], "result": says("yes")});
    assert_eq!(client.post(said.to_string()).await.status, 202);
    let reply = answer.message().await;
    assert_eq!(reply["id"], id);
    let text = reply["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), says("yes"));

    // Without a stream no question can be sent, and the call fails without waiting for an answer.
    let deaf = client.with("accept", "application/json");
    let told = deaf.execute("curious/ask", json!({})).await.good();
    assert!(
        told.contains("the client is gone, or takes no requests"),
        "{told}"
    );
    site.stop().await;
    house.stops_clean().await;
}

/// A shared server would use the last client's folders for every client.
#[journey]
async fn roots_go_to_a_clients_own_server_and_are_kept_up_to_date() {
    let asks = |name: &str| {
        let list = Step::AskAndTell {
            method: "roots/list".to_owned(),
            params: json!({}),
        };
        fake(name).tool("roots", list)
    };
    let house = house([
        asks("own").setting("scope = \"client\""),
        asks("shared"),
        asks("fixed").setting("roots = [\"/srv/site\"]"),
    ]);
    house.indexed().await;
    let client = client_with(&house, json!({"roots": {"listChanged": true}})).await;
    let roots =
        |folder: &str| json!({"roots": [{"uri": format!("file:///{folder}"), "name": "x"}]});
    let told = async |server: &str| {
        let told = client
            .execute(&format!("{server}/roots"), json!({}))
            .await
            .good();
        serde_json::from_str::<Value>(&told).unwrap()
    };
    client.answers("roots/list", roots("one"));
    assert_eq!(told("own").await, roots("one"));
    client.answers("roots/list", roots("two"));
    client
        .notify("notifications/roots/list_changed", json!({}))
        .await;
    house
        .until_received("own", |line| line.contains("roots/list_changed"))
        .await;
    assert_eq!(told("own").await, roots("two"));
    assert_eq!(told("shared").await["code"], -32601);
    assert_eq!(
        told("fixed").await,
        json!({"roots": [{"uri": "file:///srv/site"}]})
    );
    let announced = |server: &str| {
        let seen = house.received_method(server, "initialize");
        seen.last().unwrap()["params"]["capabilities"]["roots"].clone()
    };
    assert_eq!(announced("own"), json!({"listChanged": true}));
    assert_eq!(announced("shared"), Value::Null);
    house.stops_clean().await;
}

/// Creates a house with a server of each era, whose tools ask two questions at once, or one.
fn of_both_eras() -> House {
    let form = |message: &str| json!({"method": ELICIT, "params": {"message": message, "requestedSchema": {}}});
    let wanted = json!({"name": form("Who?"), "place": form("Where?")});
    let new = fake("new").era(Era::Modern);
    let old = fake("old").era(Era::Legacy);
    house([
        new.tool("ask", Step::RequireInput(wanted)),
        old.tool("ask", Step::elicit("Sure?")),
    ])
}

/// Returns the result of the fake: the received answers and the unchanged state.
fn both_answers() -> Value {
    json!([{"name": says("x"), "place": says("x")}, "the fake's"])
}

#[journey]
async fn a_server_that_asks_in_rounds_reaches_a_client_of_before() {
    let house = of_both_eras();
    house.indexed().await;
    let client = client_with(&house, json!({"elicitation": {}})).await;
    client.answers(ELICIT, says("x"));
    let told = client.execute("new/ask", json!({})).await.good();
    assert_eq!(
        serde_json::from_str::<Value>(&told).unwrap(),
        both_answers()
    );
    let calls = house.received_method("new", "tools/call");
    let announced = |call: &Value| call["params"]["_meta"][META_CAPABILITIES].clone();
    let tasks = json!({"io.modelcontextprotocol/tasks": {}});
    let expected = json!({"elicitation": {}, "extensions": tasks});
    assert_eq!(announced(&calls[0]), expected);

    let cannot = client_with(&house, json!({})).await;
    let told = cannot.execute("new/ask", json!({})).await.bad();
    assert!(
        told.contains("error input_required: new/ask asks for more"),
        "{told}"
    );
    assert!(told.contains("does not offer elicitation"), "{told}");
    house.stops_clean().await;
}

/// Makes a call in rounds, answering every question with `x` until the call is complete.
async fn in_rounds(client: &Client, tool: &str) -> (usize, Value) {
    let mut params = json!({"name": "execute_dynamic_tool",
        "arguments": {"tool_name": tool, "tool_input": {}}});
    params["_meta"][META_CAPABILITIES] = json!({"elicitation": {}});
    let mut asked = 0;
    for _ in 0..ROUNDS_MAX {
        let result = client
            .request("tools/call", params.clone())
            .await
            .into_result();
        if result["resultType"] == "complete" {
            let text = result["content"][0]["text"].as_str().unwrap();
            return (asked, serde_json::from_str(text).unwrap());
        }
        let requests = result["inputRequests"].as_object().unwrap();
        asked += requests.len();
        params["inputResponses"] = requests
            .keys()
            .map(|key| (key.clone(), says("x")))
            .collect();
        params["requestState"] = result["requestState"].clone();
        let message = &requests.values().next().unwrap()["params"]["message"];
        assert!(message.as_str().unwrap().starts_with('['), "{message}");
    }
    panic!("{tool} still asks after {ROUNDS_MAX} rounds");
}

#[journey]
async fn a_client_that_takes_no_requests_is_asked_by_the_answer_to_its_call() {
    let house = of_both_eras();
    house.indexed().await;
    let client = house.modern_client().await;
    assert_eq!(in_rounds(&client, "new/ask").await, (2, both_answers()));
    assert_eq!(in_rounds(&client, "old/ask").await, (1, says("x")));
    let params = json!({"name": "execute_dynamic_tool", "requestState": "proxy-0",
        "arguments": {"tool_name": "old/ask", "tool_input": {}}});
    let refused = client.request("tools/call", params).await;
    assert_eq!(refused.error()["code"], -32602);
    house.stops_clean().await;
}

/// A server that was started without a handshake may send no requests to a client.
#[journey]
async fn a_server_of_both_eras_is_begun_as_its_client_is() {
    let house = house([fake("any")
        .era(Era::Both)
        .tool("ask", Step::elicit("Sure?"))]);
    house.cli(["reindex"]).await.ended(0);
    assert!(house.received_method("any", "initialize").is_empty());
    let client = client_with(&house, json!({"elicitation": {}})).await;
    client.answers(ELICIT, says("yes"));
    let told = client.execute("any/ask", json!({})).await.good();
    assert_eq!(serde_json::from_str::<Value>(&told).unwrap(), says("yes"));
    assert_eq!(house.received_method("any", "initialize").len(), 1);
    house.stops_clean().await;
}
