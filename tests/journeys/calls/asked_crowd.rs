//! One server sends requests to clients of every kind concurrently, while some of them are killed.

use journeys::{
    client::Client,
    fake::{LEGACY_VERSION, META_CAPABILITIES, Step},
    house::{Fake, House, fake},
    web::Web,
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::questions::{ELICIT, client_with, says};
use crate::{calling, house_with_daemon};

/// The number of calls per client and tool.
const CALLS: usize = 6;

fn can() -> Value {
    json!({"elicitation": {}})
}

/// Plays a session over stdio that gets the server's questions as requests.
async fn by_requests(client: Client, name: &'static str) {
    client.answers(ELICIT, says(name));
    let mut replies = Vec::new();
    for n in 0..CALLS {
        for tool in ["curious/ask", "curious/echo"] {
            let (_, reply) = client
                .begin("tools/call", calling(tool, &json!({ "n": n })))
                .await;
            replies.push((n, tool, reply));
        }
    }
    for (n, tool, reply) in replies {
        check(name, n, tool, &reply.await.good());
    }
}

#[track_caller]
fn check(name: &str, n: usize, tool: &str, told: &str) {
    let expected = match tool {
        "curious/ask" => says(name),
        _ => json!({ "n": n }),
    };
    let told: Value = serde_json::from_str(told).unwrap_or_else(|_| panic!("{name} {n}: {told}"));
    assert_eq!(told, expected, "{name} {n}");
}

/// Makes a call of a client that gets the server's questions as `input_required`; `send` makes the
/// request.
async fn in_rounds<F: Future<Output = Value>>(
    name: &str,
    n: usize,
    tool: &str,
    send: impl Fn(Value) -> F,
) {
    let mut params = calling(tool, &json!({ "n": n }));
    params["_meta"][META_CAPABILITIES] = can();
    loop {
        let result = send(params.clone()).await;
        if result["resultType"] == "complete" {
            return check(
                name,
                n,
                tool,
                result["content"][0]["text"].as_str().unwrap(),
            );
        }
        let requests = result["inputRequests"].as_object().unwrap();
        params["inputResponses"] = requests
            .keys()
            .map(|key| (key.clone(), says(name)))
            .collect();
        params["requestState"] = result["requestState"].clone();
    }
}

/// Plays a session over HTTP: questions on any stream are answered by POST.
async fn over_http(web: Web, name: &'static str) {
    let mut calls = JoinSet::new();
    for n in 0..CALLS {
        for tool in ["curious/ask", "curious/echo"] {
            let web = web.clone();
            calls.spawn(async move {
                let (id, mut answer) = web
                    .send("tools/call", calling(tool, &json!({ "n": n })))
                    .await;
                if !answer.is_stream() {
                    return check(name, n, tool, &answer.reply().await.good());
                }
                loop {
                    let said = answer.message().await;
                    if said["method"] == ELICIT {
                        let said =
                            json!({"jsonrpc": "2.0", "id": said["id"], "result": says(name)});
                        assert_eq!(web.post(said.to_string()).await.status, 202);
                    } else if said["id"] == id {
                        let told = said["result"]["content"][0]["text"].as_str();
                        return check(name, n, tool, told.unwrap());
                    }
                }
            });
        }
    }
    while let Some(ended) = calls.join_next().await {
        ended.unwrap();
    }
}

/// Starts two clients, one per transport, and ends them while the server waits for their answer.
async fn die_while_asked(house: &House, web: &Web) {
    let over_stdio = client_with(house, can()).await;
    over_stdio.holds_back(ELICIT);
    let over_http = web.initialize_with("dies", LEGACY_VERSION, can()).await;
    let ask = calling("curious/ask", &json!({}));
    let (_, _reply) = over_stdio.begin("tools/call", ask.clone()).await;
    over_stdio.next(ELICIT).await;
    over_stdio.kill().await;
    let (_, mut stream) = over_http.send("tools/call", ask).await;
    while stream.message().await["method"] != ELICIT {}
}

#[journey(alone = "it needs a shared server")]
async fn every_client_is_asked_its_own_questions_though_others_die_meanwhile() {
    let house = house_with_daemon([fake("curious")
        .tool("ask", Step::elicit("Sure?"))
        .tool("echo", Step::Echo)]);
    house.indexed().await;
    let site = house.site().await;
    let web = site.web();
    // The first question marks the server as one that asks.
    let first = client_with(&house, can()).await;
    first.answers(ELICIT, says("first"));
    first.execute("curious/ask", json!({})).await.good();

    let mut crowd = JoinSet::new();
    for name in ["stdio one", "stdio two"] {
        crowd.spawn(by_requests(client_with(&house, can()).await, name));
    }
    for name in ["http one", "http two"] {
        let client = web.initialize_with(name, LEGACY_VERSION, can()).await;
        crowd.spawn(over_http(client, name));
    }
    let modern = house.modern_client().await;
    let of_web = web.clone().modern("http modern");
    for n in 0..CALLS {
        for tool in ["curious/ask", "curious/echo"] {
            let modern = modern.clone();
            crowd.spawn(async move {
                let send =
                    |params| async { modern.request("tools/call", params).await.into_result() };
                in_rounds("stdio modern", n, tool, send).await;
            });
            let web = of_web.clone();
            crowd.spawn(async move {
                let send = |params| async { web.request("tools/call", params).await.into_result() };
                in_rounds("http modern", n, tool, send).await;
            });
        }
    }
    die_while_asked(&house, &web).await;
    while let Some(ended) = crowd.join_next().await {
        ended.unwrap();
    }
    site.stop().await;
    house.stops_clean().await;
}

/// Calls of two clients end while a slow call of a third one that asks a question is under way: at first, once
/// its tool is known to ask, and while the question is open.
#[journey(alone = "it needs a shared server")]
async fn a_slow_call_that_asks_does_not_stop_the_calls_of_other_clients() {
    let house = house_with_daemon::<Fake>([]);
    let gate = house.path("gate");
    let ask = Step::Ask {
        method: ELICIT.to_owned(),
        params: json!({"message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}}),
    };
    let slow = [ask, Step::UntilExists(gate.clone()), Step::Echo];
    house.add(fake("curious").tool("slow", slow).tool("echo", Step::Echo));
    house.indexed().await;
    let asked = client_with(&house, can()).await;
    asked.answers(ELICIT, says("yes"));
    for round in [
        "asks for the first time",
        "is known to ask",
        "waits for its answer",
    ] {
        let is_held_back = round == "waits for its answer";
        if is_held_back {
            asked.holds_back(ELICIT);
        }
        let calls = house.received_method("curious", "tools/call").len();
        let slow = calling("curious/slow", &json!({}));
        let (_, slow) = asked.begin("tools/call", slow).await;
        house.until_calls("curious", calls + 1).await;
        let question = asked.next(ELICIT).await;
        let mut others = JoinSet::new();
        for _ in 0..2 {
            let client = house.client().await;
            others.spawn(async move {
                for n in 0..4 {
                    client
                        .execute("curious/echo", json!({ "n": n }))
                        .await
                        .good();
                }
            });
        }
        others.join_all().await;
        if is_held_back {
            asked.answer(&question, says("yes")).await;
        }
        house.write("gate", "");
        slow.await.good();
        std::fs::remove_file(&gate).unwrap();
    }
    house.stops_clean().await;
}
