//! Several calls in one turn.

use journeys::{
    client::Client,
    fake::{Step, payload},
    house::{House, fake},
};
use serde_json::{Value, json};

use crate::{handle, house, results::long_results::texts, tokens};

async fn served() -> (House, Client) {
    let server = fake("work")
        .tool("echo", Step::Echo)
        .tool("fail", Step::ToolError("quota used up".to_owned()))
        .tool("long", Step::Lines(5_000))
        .tool("picture", Step::Result(json!({ "content": [{ "type": "image", "data": "AAAA", "mimeType": "image/png" }] })));
    let house = house([server]);
    house.indexed().await;
    let client = house.client().await;
    (house, client)
}

fn call(tool: &str, input: &Value) -> Value {
    json!({ "tool_name": tool, "tool_input": input })
}

#[journey]
async fn answers_come_in_order_marked_and_none_hides_another() {
    let (house, client) = served().await;
    let calls = json!({ "calls": [
        call("work/echo", &json!({ "n": 1 })),
        call("work/fail", &json!({})),
        call("work/nothing", &json!({})),
        // Arguments as a string, as models write them.
        { "name": "work/echo", "arguments": "{\"n\":2}" },
        call("proxy/call_many", &json!({ "calls": [] })),
        call("work/picture", &json!({})),
    ] });
    let reply = client.execute("proxy/call_many", calls).await;
    assert!(!reply.is_error());
    let texts = texts(&reply);
    assert_eq!(texts[0], "[1 of 6: work/echo ok]");
    assert_eq!(texts[1], r#"{"n":1}"#);
    assert_eq!(texts[2], "[2 of 6: work/fail error]");
    assert_eq!(texts[3], "quota used up");
    assert_eq!(texts[4], "[3 of 6: work/nothing error]");
    assert!(texts[5].starts_with("error unknown_tool: "), "{}", texts[5]);
    assert_eq!(texts[6], "[4 of 6: work/echo ok]");
    assert_eq!(texts[7], r#"{"n":2}"#);
    assert!(
        texts[9].contains("one call_many cannot make another"),
        "{}",
        texts[9]
    );
    assert_eq!(reply.content().last().unwrap()["type"], "image");
    let all_bad = json!({ "calls": [call("work/fail", &json!({}))] });
    assert!(client.execute("proxy/call_many", all_bad).await.is_error());
    house.stops_clean().await;
}

#[journey]
async fn the_calls_are_under_way_together() {
    let house = house::<journeys::house::Fake>([]);
    let gate = house.path("gate");
    house.add(fake("slow").tool(
        "wait",
        [
            Step::Remark("here".to_owned()),
            Step::UntilExists(gate),
            Step::Echo,
        ],
    ));
    house.indexed().await;
    let client = house.client().await;
    let calls = json!({ "calls": vec![call("slow/wait", &json!({})); 16] });
    let (_, answer) = client
        .begin("tools/call", crate::calling("proxy/call_many", &calls))
        .await;
    house.until_calls("slow", 16).await;
    house.write("gate", "");
    let reply = client.within("all answers", answer).await;
    assert!(reply.good().contains("[16 of 16: slow/wait ok]"));
    house.stops_clean().await;
}

#[journey]
async fn the_sum_of_the_answers_keeps_to_one_budget() {
    let (house, client) = served().await;
    for count in [2, 7, 16, 60] {
        let calls = json!({ "calls": vec![call("work/long", &json!({})); count] });
        let texts = texts(&client.execute("proxy/call_many", calls).await);
        let cost: usize = texts.iter().map(|text| tokens(text)).sum();
        assert!(cost <= 4_000, "{count} calls cost {cost} tokens");
        let kept = texts
            .iter()
            .filter(|text| text.contains("{\"handle\":"))
            .count();
        assert_eq!(kept, count, "each result is kept");
        let last = texts.last().unwrap();
        let read = json!({ "handle": handle(last), "offset": 0, "limit": 3 });
        let lines = client.execute("proxy/read_result", read).await.good();
        assert!(
            payload::lines(5_000).starts_with(lines.split("\n[lines").next().unwrap().trim_end())
        );
    }
    let mixed =
        json!({ "calls": [call("work/long", &json!({})), call("work/echo", &json!({ "n": 1 }))] });
    let texts = texts(&client.execute("proxy/call_many", mixed).await);
    let cost: usize = texts.iter().map(|text| tokens(text)).sum();
    assert!(
        (3_300..=4_000).contains(&cost),
        "the budget that a short result leaves goes to the long one: {cost}"
    );
    house.stops_clean().await;
}

#[journey]
async fn the_first_failure_ends_it_where_that_is_asked_for() {
    let (house, client) = served().await;
    let calls = json!({ "stop_on_error": true, "calls": [
        call("work/echo", &json!({ "n": 1 })),
        call("work/fail", &json!({})),
        call("work/echo", &json!({ "n": 2 })),
    ] });
    let texts = texts(&client.execute("proxy/call_many", calls).await);
    assert_eq!(texts[2], "[2 of 3: work/fail error]");
    assert!(texts[5].starts_with("not called: "), "{}", texts[5]);
    assert_eq!(house.received_method("work", "tools/call").len(), 2);
    house.stops_clean().await;
}

#[journey]
async fn what_is_no_call_is_refused_with_the_signature() {
    let (house, client) = served().await;
    for arguments in [json!({}), json!({ "calls": [] }), json!({ "calls": "x" })] {
        let error = client.execute("proxy/call_many", arguments).await.bad();
        assert!(error.starts_with("error invalid_input: "), "{error}");
        assert!(error.contains("proxy/call_many(calls: "), "{error}");
    }
    house.stops_clean().await;
}
