//! Reading on in a long result: parts, lines, matches, values, passages.

use journeys::{client::Client, fake::Step, house::House};
use serde_json::{Value, json};

use crate::{
    handle,
    results::long_results::{BUDGET, fitting, items, log, read, served},
};

/// A result that was cut, and the client that called.
struct Long {
    house: House,
    client: Client,
    handle: String,
}

impl Long {
    async fn of(text: String) -> Self {
        let (house, client) = served([("text", Step::Text(text))]).await;
        let answer = client.execute("big/text", json!({})).await.good();
        let handle = handle(&answer).to_owned();
        Self {
            house,
            client,
            handle,
        }
    }

    async fn ask(&self, what: Value) -> Vec<String> {
        self.ask_of(&self.handle, what).await
    }

    async fn ask_of(&self, handle: &str, mut what: Value) -> Vec<String> {
        what["handle"] = json!(handle);
        let reply = read(&self.client, what).await;
        assert!(!reply.is_error(), "{}", reply.text());
        fitting(&reply, BUDGET)
    }

    async fn refused(&self, mut what: Value) -> String {
        what["handle"] = json!(self.handle);
        read(&self.client, what).await.bad()
    }
}

fn log_lines() -> Vec<String> {
    log().lines().map(str::to_owned).collect()
}

fn list() -> String {
    json!({ "total": 900, "items": items(900) }).to_string()
}

#[journey]
async fn lines_and_bytes_are_counted_from_either_end() {
    let long = Long::of(log()).await;
    let (handle, lines) = (&long.handle, log_lines());
    let some = long.ask(json!({ "offset": 10, "limit": 3 })).await;
    assert_eq!(some[0], lines[10..13].join("\n") + "\n");
    assert_eq!(
        some[1],
        format!(
            "[lines 11 to 13 of 3,001. More: {{\"handle\":\"{handle}\",\"offset\":13,\"limit\":3}}]"
        )
    );
    let end = long.ask(json!({ "offset": -2 })).await;
    assert_eq!(end[0], lines[2_999..].join("\n") + "\n");
    assert!(end[1].ends_with(": the end]"), "{}", end[1]);
    let bytes = long
        .ask(json!({ "offset": -10, "limit": 4, "unit": "bytes" }))
        .await;
    assert_eq!(bytes[0], log()[log().len() - 10..log().len() - 6]);
    long.house.stops_clean().await;
}

#[journey]
async fn matching_lines_come_with_numbers_and_what_is_around() {
    let long = Long::of(log()).await;
    let lines = log_lines();
    let errors = long.ask(json!({ "grep": "ERROR|FATAL" })).await;
    assert!(
        errors[0].starts_with(&format!(
            "6-{}\n7-{}\n8:{}\n9-",
            lines[5], lines[6], lines[7]
        )),
        "{}",
        errors[0]
    );
    assert!(errors[0].contains("\n--\n206-"), "{}", errors[0]);
    assert!(
        errors[0].contains(&format!("\n3001:{}\n", lines[3_000])),
        "{}",
        errors[0]
    );
    assert!(
        errors[1].starts_with("[matches 1 to 16 of 16; 3,001 lines searched"),
        "{}",
        errors[1]
    );
    let many = long.ask(json!({ "grep": "worker" })).await;
    assert!(many[1].contains(" of 3,000; "), "{}", many[1]);
    let next: Value = serde_json::from_str(
        many[1]
            .split_once("More: ")
            .unwrap()
            .1
            .trim_end_matches(']'),
    )
    .unwrap();
    let second = long.ask(next).await;
    assert!(second[1].starts_with("[matches "), "{}", second[1]);
    let none = long.ask(json!({ "grep": "nowhere" })).await;
    assert_eq!(none, ["[no line matches; 3,001 lines searched]"]);
    long.house.stops_clean().await;
}

#[journey]
async fn a_question_of_any_length_leaves_the_answer_in_its_budget() {
    let long = Long::of(log()).await;
    let noise = "seldom ".repeat(1_000);
    let grep = long.ask(json!({ "grep": format!("worker|{noise}") })).await;
    assert!(
        grep[1].contains("More: the same with \"offset\":"),
        "{}",
        grep[1]
    );
    for what in [json!({ "grep": "worker" }), json!({ "offset": 5 })] {
        let mut input = what;
        input["handle"] = json!(long.handle);
        let call =
            json!({ "tool_name": "proxy/read_result", "tool_input": input, "max_tokens": 1 });
        let little = long.client.call("execute_dynamic_tool", call).await;
        assert!(
            fitting(&little, 200)[0].contains(" worker "),
            "{}",
            little.text()
        );
    }
    long.house.stops_clean().await;
}

#[journey]
async fn values_of_json_are_taken_out() {
    let long = Long::of(list()).await;
    let one = long.ask(json!({ "select": ".items[899].title" })).await;
    assert_eq!(one, ["Broken link on page 899\n"]);
    let ids = long
        .ask(json!({ "select": "[.items[] | select(.id % 300 == 0) | .id]" }))
        .await;
    assert_eq!(ids, ["[0,300,600]\n"]);
    let grep = long.ask(json!({ "grep": "page 77\\b" })).await;
    assert!(
        grep[0].starts_with("1:byte ") && grep[0].contains("Broken link on page 77\""),
        "{}",
        grep[0]
    );
    // A long value of a reading is kept as a new result.
    let large = long.ask(json!({ "select": ".items" })).await;
    assert!(large[0].contains("900 items of {id"), "{}", large[0]);
    let again = long
        .ask_of(
            handle(large.last().unwrap()),
            json!({ "select": ".[3].id" }),
        )
        .await;
    assert_eq!(again, ["3\n"]);
    long.house.stops_clean().await;
}

#[journey]
async fn what_cannot_be_read_is_told_with_its_reason() {
    let long = Long::of(list()).await;
    for (what, why) in [
        (json!({ "part": 999 }), "part: there are "),
        (json!({ "grep": "(" }), "grep: regex parse error"),
        (
            json!({ "pointer": "/items/3" }),
            "pointer: it was removed; use select: ",
        ),
        (
            json!({ "find": "broken" }),
            "find: it was removed; use grep: ",
        ),
        (
            json!({ "select": ".items[" }),
            "invalid jq expression: expected ",
        ),
        (
            json!({ "select": ".items + 1" }),
            "select: cannot calculate",
        ),
        (
            json!({ "grep": "a", "select": "." }),
            "give either grep or select",
        ),
    ] {
        let error = long.refused(what).await;
        assert!(
            error.starts_with("error invalid_input: ") && error.contains(why),
            "{error}"
        );
    }
    long.house.stops_clean().await;
}

#[journey]
async fn a_jq_expression_that_never_ends_is_ended() {
    let (house, client) = served([("list", Step::Text(json!(items(600)).to_string()))]).await;
    let text = client.execute("big/list", json!({})).await.good();
    let endless = json!({ "handle": handle(&text), "select": "last(range(1e18))" });
    let error = read(&client, endless).await.bad();
    assert!(error.contains("ended after 10 s"), "{error}");
    let hungry = json!({ "handle": handle(&text), "select": "[range(1e9)] | length" });
    let error = read(&client, hungry).await.bad();
    assert!(error.contains("narrow it"), "{error}");
    let secret = json!({ "handle": handle(&text), "select": "env | length" });
    assert_eq!(
        read(&client, secret).await.good(),
        "0\n",
        "the expression sees no variable"
    );
    house.stops_clean().await;
}

#[journey]
async fn the_command_line_reads_the_same() {
    let (house, client) = served([
        ("log", Step::Text(log())),
        ("list", Step::Text(json!(items(600)).to_string())),
    ])
    .await;
    let text = client.execute("big/log", json!({})).await.good();
    let handle_of_log = handle(&text).to_owned();
    let read = async |args: &[&str]| {
        let args = [&["call", "--handle", &handle_of_log], args].concat();
        house.cli(args).await
    };
    let lines: Vec<String> = log().lines().map(str::to_owned).collect();
    let tail = read(&["--offset", "-1"]).await;
    assert_eq!(tail.ended(0), format!("{}\n", lines[3_000]));
    let grep = read(&["--grep", "FATAL", "--quiet"]).await;
    assert!(
        grep.ended(0).ends_with(&format!("3001:{}\n", lines[3_000])),
        "{}",
        grep.stdout
    );
    assert_eq!(grep.stderr, "");
    let first = read(&["--part", "1"]).await;
    let second = read(&["--part", "2"]).await;
    let both = first.ended(0).to_owned() + second.ended(0);
    assert!(log().starts_with(&both) && !second.stdout.is_empty());
    let text = client.execute("big/list", json!({})).await.good();
    let ids = house
        .cli(["call", "--handle", handle(&text), "--select", ".[599].id"])
        .await;
    assert_eq!(ids.ended(0), "599\n");
    let whole = house.cli(["call", "--handle", handle(&text)]).await;
    assert_eq!(whole.ended(0), json!(items(600)).to_string());
    let wrong = house
        .cli(["call", "--handle", handle(&text), "--grep", "("])
        .await;
    assert!(
        wrong.ended(1).is_empty() && wrong.stderr.contains("regex parse error"),
        "{}",
        wrong.stderr
    );
    let both = house
        .cli([
            "call",
            "--handle",
            handle(&text),
            "--grep",
            "a",
            "--select",
            "b",
        ])
        .await;
    assert_eq!(both.ended(2), "");
    for (removed, instead) in [("--find", "--grep"), ("--pointer", "--select")] {
        let refused = house
            .cli(["call", "--handle", handle(&text), removed, "a"])
            .await;
        assert_eq!(refused.ended(2), "");
        assert!(
            refused.stderr.contains(&format!("`{removed}` was removed"))
                && refused.stderr.contains(instead),
            "{}",
            refused.stderr
        );
    }
    house.stops_clean().await;
}
