//! Rules for calls, for every kind of request that makes a call.

use std::{fs, time::Duration};

use journeys::{
    client::Client,
    fake::{FakeItem, LEGACY_VERSION, Step},
    house::{House, fake},
};
use serde_json::{Value, json};

use super::questions::{ELICIT, client_with};
use crate::house;

const EXECUTE: &str = "execute_dynamic_tool";

/// Methods by which a call can reach a server.
const REACHES: [&str; 5] = [
    "tools/call",
    "prompts/get",
    "resources/read",
    "resources/subscribe",
    "completion/complete",
];

async fn bank() -> House {
    let wipe = json!({"name": "wipe", "annotations": {"destructiveHint": true},
        "inputSchema": {"type": "object"}});
    let contents = Step::Result(json!({"contents": []}));
    let server = fake("bank")
        .tool("pay", Step::Echo)
        .tool("show", Step::Echo)
        .tool_as(wipe, Step::text("wiped"))
        .script(|script| {
            let filled = Step::Filled(json!({"messages": []}));
            script.prompts = vec![FakeItem::defined(json!({"name": "draft"}), filled)];
            let one = json!({"uri": "bank://one", "name": "one"});
            script.resources = vec![FakeItem::defined(one, contents.clone())];
            let any = json!({"uriTemplate": "bank://account/{n}", "name": "account"});
            script.templates = vec![FakeItem::defined(any, contents)];
            script.completions = vec!["Ada".to_owned()];
        });
    let house = house([server]);
    fs::create_dir(house.path("scripts")).unwrap();
    house.write(
        "scripts/transfer.ts",
        "export async function main() { return await bank.pay({ to: 'eve' }) }",
    );
    house.write(
        "scripts/within.ts",
        "export async function main() { return await scripts.transfer({}) }",
    );
    house.indexed().await;
    house
}

/// Returns calls that all lead to `bank/pay`, or to the server's prompts and resources.
fn ways() -> Vec<(&'static str, Value)> {
    let eve = json!({"to": "eve"});
    let mut ways: Vec<(&str, Value)> = [
        "bank/pay",
        "BANK/Pay",
        " bank/pay ",
        "bank.pay",
        "bank__pay",
        "mcp__bank__pay",
        "pay",
    ]
    .map(|name| (EXECUTE, json!({"tool_name": name, "tool_input": eve})))
    .into();
    let own = |tool: &str, input: Value| (EXECUTE, json!({"tool_name": tool, "tool_input": input}));
    let script = |text: &str| own("proxy/run_script", json!({"script": text}));
    let one = json!({"calls": [{"tool_name": "bank/pay", "tool_input": eve}]});
    ways.extend([
        (
            EXECUTE,
            json!({"tool_name": "bank/pay", "tool_input": "{\"to\":\"\\u0065ve\"}"}),
        ),
        (EXECUTE, json!({"tool_name": "bank/pay", "to": "eve"})),
        (
            EXECUTE,
            json!({"tool_name": "bank/pay", "tool_input": {"arguments": eve}}),
        ),
        (
            EXECUTE,
            json!({"tool_name": "bank/pay", "tool_input": eve, "raw": true}),
        ),
        (
            EXECUTE,
            json!({"tool_name": "bank/pay", "tool_input": eve, "dry_run": true}),
        ),
        own("bank/pay", json!({"to": "eve", "proxy/raw": true})),
        own("proxy/call_many", one.clone()),
        own("call_many", one),
        own("proxy/get_prompt", json!({"name": "bank__draft"})),
        own("proxy/get_prompt", json!({"name": "bank/draft"})),
        own("proxy/read_resource", json!({"uri": "bank://one"})),
        own("proxy/read_resource", json!({"uri": "BANK://one"})),
        own("proxy/read_resource", json!({"uri": "bank://account/7"})),
        script("await bank.pay({ to: 'eve' })"),
        script("await tools['bank'].pay({ to: 'eve' })"),
        script("const name = ['bank', 'PAY']; await tools[name[0]][name[1]]({ to: 'eve' })"),
        script("await proxy.call_many({ calls: [{ tool_name: 'bank/pay', tool_input: {} }] })"),
        script("await proxy.read_resource({ uri: 'bank://one' })"),
        script("await scripts.within({})"),
        own("scripts/transfer", json!({})),
        own("scripts/within", json!({})),
        ("prompts/get", json!({"name": "draft"})),
        ("resources/read", json!({"uri": "bank://one"})),
        ("resources/read", json!({"uri": "bank://account/7"})),
        ("resources/subscribe", json!({"uri": "bank://one"})),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "draft"},
            "argument": {"name": "name", "value": "A"}}),
        ),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/resource", "uri": "bank://account/{n}"},
            "argument": {"name": "n", "value": "A"}}),
        ),
    ]);
    ways
}

fn count_reached(house: &House) -> usize {
    let of = |method: &&str| house.received_method("bank", method).len();
    REACHES.iter().map(of).sum()
}

#[journey]
async fn no_way_leads_round_a_rule() {
    let house = bank().await;
    let client = house.client().await;
    client.execute("bank/show", json!({})).await.good();
    // A rule that is added while the session is open.
    house.configure_more("[[rules]]\ndecision = \"deny\"\nserver = \"bank\"\nreason = \"by hand\"");
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    let denied = async {
        while !client.execute("bank/show", json!({})).await.is_error() {
            looks.tick().await;
        }
    };
    client.within("the new rule", denied).await;
    let reached = count_reached(&house);
    let is_refused = |said: &str| said.contains("denied by rule 1 (by hand)");
    let mut other = Vec::new();
    for (method, params) in ways() {
        let said = if method == EXECUTE {
            client.call(EXECUTE, params.clone()).await
        } else {
            client.request(method, params.clone()).await
        };
        if !is_refused(said.raw()) {
            other.push(format!("{method} {params}: {}", said.raw()));
        }
    }
    // Only the three tools can be called by name.
    for name in ["bank/pay", "bank__pay", "pay"] {
        client.call(name, json!({"to": "eve"})).await.error();
    }
    let called = house.cli(["call", "bank/pay", "to=eve"]).await;
    assert_ne!(called.code, Some(0));
    assert!(called.stderr.contains("denied by rule 1"), "{called:?}");
    let site = house.site().await;
    let session = site.web().initialize("journeys", LEGACY_VERSION).await;
    for web in [&session, &site.web().modern("journeys")] {
        for (method, params) in ways().into_iter().filter(|(method, _)| *method == EXECUTE) {
            let said = web.call(method, params.clone()).await;
            if !is_refused(said.raw()) {
                other.push(format!("http {params}: {}", said.raw()));
            }
        }
    }
    assert_eq!(other, Vec::<String>::new());
    assert_eq!(count_reached(&house), reached);
    site.stop().await;
    house.stops_clean().await;
}

async fn run(client: &Client, script: &str) -> String {
    let reply = client.execute("proxy/run_script", json!({"script": script}));
    let reply = reply.await;
    crate::results::long_results::texts(&reply).join("\n")
}

/// Two calls, each of which asks the user.
const TWICE: &str = "const said = [];\nfor (const n of [1, 2]) {\n\
    try { said.push(await bank.wipe({ n })) } catch (e) { said.push(e.code) }\n}\nsaid";

const AT_ONCE: &str = "await Promise.all([1, 2, 3, 4, 5].map(n => bank.wipe({ n })))";

fn allow(answer: &str) -> Value {
    json!({"action": "accept", "content": {"allow": answer}})
}

#[journey]
async fn a_person_answers_what_a_script_may_do() {
    let house = bank().await;
    let text = fs::read_to_string(house.config()).unwrap();
    house.configure(&format!(
        "policy = \"careful\"\napprovals.wait_s = 0\n{text}"
    ));
    let client = client_with(&house, json!({"elicitation": {}})).await;
    let refused = r#"["denied","denied"]"#;
    let done = r#"["wiped","wiped"]"#;
    for (answer, expected) in [
        (json!({"action": "decline"}), refused),
        (json!({"action": "cancel"}), refused),
        (json!({"action": "accept"}), refused),
        (allow("no"), refused),
        (allow("yes, of course"), refused),
        (allow("once"), done),
    ] {
        client.answers(ELICIT, answer.clone());
        assert_eq!(run(&client, TWICE).await, expected, "{answer}");
        for n in [1, 2] {
            let asked = client.next(ELICIT).await;
            let asked = asked["params"]["message"].as_str().unwrap();
            let start = format!("[proxy] Allow bank/wipe?\narguments:\n  \"n\": {n}\n");
            assert!(asked.starts_with(&start), "{asked}");
        }
    }
    // One answer decides all calls that wait for it.
    let asked = |heard: &[Value]| heard.iter().filter(|it| it["method"] == ELICIT).count();
    client.answers(ELICIT, allow("this session"));
    let five = r#"["wiped","wiped","wiped","wiped","wiped"]"#;
    assert_eq!(run(&client, AT_ONCE).await, five);
    client.next(ELICIT).await;
    assert_eq!(run(&client, TWICE).await, done);
    assert_eq!(asked(&client.heard().await), 0);

    let other = client_with(&house, json!({"elicitation": {}})).await;
    other.answers(ELICIT, allow("always"));
    assert_eq!(run(&other, AT_ONCE).await, five);
    assert_eq!(asked(&other.heard().await), 1);
    let written = fs::read_to_string(house.config()).unwrap();
    assert!(written.contains("tool = \"wipe\""), "{written}");

    // The error for a client that supports no questions names the command to type.
    house.configure(&format!(
        "policy = \"careful\"\napprovals.wait_s = 0\n{text}"
    ));
    let mute = house.client().await;
    let told = run(&mute, "await bank.wipe({})").await;
    assert!(told.contains("`proxy policy allow bank/wipe`"), "{told}");
    assert_eq!(house.received_method("bank", "tools/call").len(), 14);
    house.stops_clean().await;
}

#[journey]
async fn a_script_has_time_for_its_person_and_a_call_taken_back_is_not_made() {
    let house = bank().await;
    house.configure_more("[[rules]]\ndecision = \"ask\"\ntool = \"bank/wipe\"");
    let client = client_with(&house, json!({"elicitation": {}})).await;
    client.holds_back(ELICIT);
    let script = |text: &str| {
        let input = json!({"script": text, "timeout_ms": 4_000});
        json!({"name": EXECUTE, "arguments": {"tool_name": "proxy/run_script", "tool_input": input}})
    };
    let (_, waits) = client
        .begin("tools/call", script("await bank.wipe({})"))
        .await;
    let question = client.next(ELICIT).await;
    // This script runs as long as its timeout, which the first script has then exceeded.
    let (_, endless) = client
        .begin("tools/call", script("await sleep(60_000)"))
        .await;
    let ended = endless.await.bad();
    assert!(ended.contains("script_limit"), "{ended}");
    client.answer(&question, allow("once")).await;
    assert_eq!(waits.await.good(), "wiped");

    let (id, _) = client
        .begin("tools/call", script("await bank.wipe({})"))
        .await;
    let question = client.next(ELICIT).await;
    client.cancel(id).await;
    let told = client.next("notifications/cancelled").await;
    assert_eq!(told["params"]["requestId"], question["id"]);
    client.answer(&question, allow("once")).await;
    client.execute("bank/show", json!({})).await.good();
    let called = house.received_method("bank", "tools/call").len();
    assert_eq!(called, 2, "one call of wipe, one of show");
    house.stops_clean().await;
}

const RULES: &str = "[[rules]]\ndecision = \"deny\"\ntool = \"fs/write*\"\n\
    arguments = { \"/path\" = { inside = \"/secret\" } }\n\
    # the rest\n[[rules]]\ndecision = \"ask\"\ntool = \"fs/*\"\n";

/// Returns the answers that the user is offered for a call, which is then made.
async fn offered(client: &Client, tool: &str, path: &str) -> String {
    client.answers(ELICIT, allow("once"));
    client.execute(tool, json!({"path": path})).await.good();
    let asked = client.next(ELICIT).await;
    asked["params"]["requestedSchema"]["properties"]["allow"]["enum"].to_string()
}

#[journey]
async fn always_is_an_exception_from_the_rule_that_asked_and_from_no_other() {
    let server = fake("fs")
        .tool("write_file", Step::Echo)
        .tool("wipe\\", Step::Echo)
        .tool("list", Step::Echo);
    let house = house([server]);
    house.indexed().await;
    house.configure_more(RULES);
    let client = client_with(&house, json!({"elicitation": {}})).await;
    // The answer "always" is not offered: it would override the first rule.
    let answers = offered(&client, "fs/write_file", "/tmp/x").await;
    assert_eq!(answers, r#"["once","this session","no"]"#);
    for tool in ["fs/wipe\\", "fs/list"] {
        client.answers(ELICIT, allow("always"));
        client.execute(tool, json!({})).await.good();
        client.next(ELICIT).await;
    }
    let written = fs::read_to_string(house.config()).unwrap();
    let (before, after) = written.split_once("# the rest").unwrap();
    assert!(before.contains("inside = \"/secret\""), "{written}");
    assert!(
        before.contains("tool = \"wipe[\\\\]\"") || before.contains("tool = 'wipe[\\]'"),
        "{written}"
    );
    assert!(
        before.contains("tool = \"list\"") && !after.contains("list"),
        "{written}"
    );
    assert_eq!(house.cli(["config", "check"]).await.code, Some(0));
    let other = client_with(&house, json!({"elicitation": {}})).await;
    let allowed = async {
        let mut looks = tokio::time::interval(std::time::Duration::from_millis(20));
        // A changed file is read with a delay.
        while other.execute("fs/wipe\\", json!({})).await.is_error() {
            looks.tick().await;
        }
    };
    other.within("call that is allowed", allowed).await;
    let denied = other.execute("fs/write_file", json!({"path": "/secret/key"}));
    assert!(
        denied.await.bad().contains("denied by rule 1"),
        "the first rule still applies"
    );
    house.stops_clean().await;
}

#[journey]
async fn an_exception_is_refused_where_it_would_not_work_or_the_rules_changed() {
    let server = fake("fs")
        .tool("write_file", Step::Echo)
        .tool("make", Step::Echo)
        .tool("list", Step::Echo);
    let house = house([server]);
    house.indexed().await;
    house.configure_more(RULES);
    let client = client_with(&house, json!({"elicitation": {}})).await;
    let allowed = house
        .cli(["policy", "allow", "fs/list", "--client", "other"])
        .await;
    assert_eq!(allowed.code, Some(0), "{allowed:?}");
    let refused = house.cli(["policy", "allow", "fs/write_file"]).await;
    assert_ne!(refused.code, Some(0));
    assert!(
        refused.stderr.contains("rule 1 decides by its arguments"),
        "{refused:?}"
    );
    let again = house
        .cli(["policy", "allow", "fs/list", "--client", "else"])
        .await;
    assert!(
        again
            .stderr
            .contains("the rules before it still come first"),
        "{again:?}"
    );
    assert_eq!(
        house
            .cli(["policy", "allow", "fs/list", "--client", "else"])
            .await
            .code,
        Some(0)
    );
    // No exception is written if the rules have changed since the question.
    client.holds_back(ELICIT);
    let (_, waits) = client
        .begin("tools/call", crate::calling("fs/make", &json!({})))
        .await;
    let question = client.next(ELICIT).await;
    let written = fs::read_to_string(house.config()).unwrap();
    let changed = written.replace(
        "# the rest\n[[rules]]",
        "# the rest\n[[rules]]\nreason = \"new\"",
    );
    house.configure(&changed);
    client.answer(&question, allow("always")).await;
    waits.await.good();
    assert_eq!(fs::read_to_string(house.config()).unwrap(), changed);
    house.stops_clean().await;
}
