//! Calls that wait for a person outside of the client, because the client cannot ask.

use std::time::Duration;

use journeys::{
    client::DEADLINE,
    fake::{LEGACY_VERSION, Step},
    house::{House, fake},
};
use serde_json::{Value, json};
use tokio::time::{interval, timeout};

use crate::{calling, house, house_with_daemon};

async fn bank(house: House, wait_s: u64) -> House {
    let wipe = json!({"name": "wipe", "annotations": {"destructiveHint": true},
        "inputSchema": {"type": "object"}});
    house.add(fake("bank").tool_as(wipe, Step::Echo));
    let text = std::fs::read_to_string(house.config()).unwrap();
    house.configure(&format!(
        "policy = \"careful\"\napprovals.wait_s = {wait_s}\n{text}"
    ));
    house.indexed().await;
    house
}

/// Waits until this many calls wait for a person; returns them.
async fn pending(house: &House, count: usize) -> Vec<Value> {
    let waiting = async {
        let mut ticks = interval(Duration::from_millis(100));
        loop {
            ticks.tick().await;
            let listed = house.cli(["review", "--pending", "--json"]).await;
            let listed: Vec<Value> = serde_json::from_str(&listed.stdout).unwrap();
            if listed.len() == count {
                return listed;
            }
        }
    };
    timeout(DEADLINE, waiting).await.expect("the calls wait")
}

async fn decide(house: &House, args: &[&str]) {
    let args = [&["review", "--pending"], args].concat();
    house.cli(args).await.ended(0);
}

#[tokio::test]
async fn a_call_waits_until_a_person_allows_it_outside_of_its_client() {
    let house = bank(house_with_daemon::<journeys::house::Fake>([]), 600).await;
    let client = house.client().await;
    let site = house.site().await;
    let web = site.web().modern("over http");
    let begin = async |account: u32| {
        let call = calling("bank/wipe", &json!({"account": account}));
        client.begin("tools/call", call).await
    };
    let (_, first) = begin(1).await;
    let one = pending(&house, 1).await.remove(0);
    let message = one["message"].as_str().unwrap();
    assert!(
        message.starts_with("Allow bank/wipe?\narguments:\n  \"account\": 1"),
        "{message}"
    );
    assert_eq!(
        one["choices"],
        json!(["once", "this session", "always", "no"])
    );
    let id = one["id"].to_string();
    let listed = house.cli(["review", "--pending"]).await;
    assert!(
        listed.stdout.contains("the call waits\n  Allow bank/wipe?"),
        "{listed:?}"
    );
    let wrong = house.cli(["review", "--pending", "--allow", "99"]).await;
    assert!(
        wrong.stderr.contains("no call with the number 99 waits"),
        "{wrong:?}"
    );
    decide(&house, &["--allow", &id]).await;
    assert_eq!(first.await.good(), "{\"account\":1}");

    // A second client waits at the same time, and each gets its own answer.
    let (_, second) = begin(2).await;
    let over_http =
        tokio::spawn(async move { web.execute("bank/wipe", json!({"account": 3})).await });
    let both = pending(&house, 2).await;
    let of = |account: u32| {
        let text = format!("\"account\": {account}");
        let is_its = |it: &&Value| it["message"].as_str().unwrap().contains(&text);
        both.iter().find(is_its).unwrap()["id"].to_string()
    };
    decide(&house, &["--deny", &of(2)]).await;
    let refused = second.await.bad();
    assert!(refused.contains("the person did not give it"), "{refused}");
    decide(&house, &["--allow", &of(3)]).await;
    assert_eq!(over_http.await.unwrap().good(), "{\"account\":3}");

    // A call that its client takes back is not decided any more.
    let (id, third) = begin(4).await;
    pending(&house, 1).await;
    client.cancel(id).await;
    drop(third);
    pending(&house, 0).await;
    site.stop().await;
    house.stops_clean().await;
}

#[tokio::test]
async fn an_answer_that_comes_too_late_is_for_the_next_call_alone() {
    let house = bank(house_with_daemon::<journeys::house::Fake>([]), 1).await;
    let client = house.client().await;
    let wipe = async |account: u32| {
        client
            .execute("bank/wipe", json!({"account": account}))
            .await
    };
    let told = wipe(1).await.bad();
    assert!(
        told.contains("`proxy review --pending`") && told.contains("15 minutes"),
        "{told}"
    );
    let one = pending(&house, 1).await.remove(0);
    assert_eq!(one["holds_call"], json!(false));
    decide(&house, &["--allow", &one["id"].to_string()]).await;
    // Other arguments are another call.
    wipe(2).await.bad();
    assert_eq!(wipe(1).await.good(), "{\"account\":1}");
    wipe(1).await.bad();
    let listed = pending(&house, 2).await;
    let ids = listed.iter().map(|it| it["id"].to_string());
    let last = ids.max_by_key(|it| it.parse::<u64>().unwrap()).unwrap();
    decide(&house, &["--allow", &last, "--for", "this session"]).await;
    for _ in 0..3 {
        wipe(1).await.good();
    }
    assert_eq!(house.received_method("bank", "tools/call").len(), 4);
    house.stops_clean().await;
}

#[tokio::test]
async fn a_process_that_no_person_reaches_refuses_at_once() {
    let house = bank(house::<journeys::house::Fake>([]), 600).await;
    let client = house.serve();
    client.initialize(LEGACY_VERSION).await;
    let refused = client.execute("bank/wipe", json!({})).await.bad();
    assert!(refused.contains("no person can be asked"), "{refused}");
    house.stops_clean().await;
}
