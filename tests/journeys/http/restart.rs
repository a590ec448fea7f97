//! Sessions that outlive the process.

use std::os::unix::fs::PermissionsExt as _;

use journeys::{
    fake::{LEGACY_VERSION, Step},
    house::{House, fake},
    site::Site,
    web::Web,
};
use serde_json::json;

use crate::{calling, house};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Creates a house whose tool `long` returns about 2,000 tokens: less than the default budget, and
/// more than the budget of the client `small`.
async fn house_of_two_budgets(http: &str) -> House {
    let long = "a line of a long answer\n".repeat(300);
    let server = fake("any")
        .tool("long", Step::text(&long))
        .tool("stuck", Step::UntilCancelled);
    let house = house([server]);
    house.configure_more(&format!(
        "[http]\n{http}\n[clients.small]\nmax_tokens = 300"
    ));
    house.indexed().await;
    house
}

async fn status(client: &Web) -> u16 {
    client.send("ping", json!({})).await.1.status
}

/// Returns the number of bytes of a long result in the first response.
async fn budget(client: &Web) -> usize {
    client.execute("any/long", json!({})).await.good().len()
}

#[tokio::test]
async fn a_session_goes_on_with_the_next_process() {
    let tokens = format!("tokens = {{ one = \"{TOKEN}\", two = \"{TOKEN}2\" }}");
    let house = house_of_two_budgets(&tokens).await;
    let by =
        |site: &Site, token: &str| site.web().with("authorization", &format!("Bearer {token}"));
    let site = house.site().await;
    let client = by(&site, TOKEN);
    let begin = |name| client.initialize(name, LEGACY_VERSION);
    let (small, large, ended) = (
        begin("small").await,
        begin("large").await,
        begin("small").await,
    );
    let (few, many) = (budget(&small).await, budget(&large).await);
    assert!(few * 3 < many, "{few} bytes of {many}");
    site.kill().await;

    let site = house.site().await;
    let next = |client: &Web| client.clone().at(site.address());
    let [small, large, ended] = [&small, &large, &ended].map(next);
    let mut standing = small.ask("GET", "/mcp", "").await;
    assert!(standing.is_stream());
    assert_eq!(budget(&small).await, few);
    assert_eq!(budget(&large).await, many);
    let list = large.request("tools/list", json!({})).await.into_result();
    assert_eq!(list["tools"].as_array().unwrap().len(), 3);
    let level = json!({ "level": "warning" });
    large.request("logging/setLevel", level).await.into_result();

    let thief = small
        .clone()
        .with("authorization", &format!("Bearer {TOKEN}2"));
    assert_eq!(status(&thief).await, 404);
    let altered = small.session().replacen('.', ".A", 1);
    assert_eq!(
        status(&small.clone().with("mcp-session-id", &altered)).await,
        404
    );
    for client in [&small, &ended] {
        assert_eq!(client.ask("DELETE", "/mcp", "").await.status, 204);
        assert_eq!(status(client).await, 404);
        assert_eq!(client.ask("DELETE", "/mcp", "").await.status, 404);
    }
    assert_eq!(standing.event().await, None, "the session has ended");
    assert!(
        !site.stderr().contains(large.session()),
        "{}",
        site.stderr()
    );
    site.stop().await;
    house.stops_clean().await;
}

#[tokio::test]
async fn a_call_that_our_end_cuts_short_is_answered_and_its_session_goes_on() {
    let house = house_of_two_budgets("").await;
    let site = house.site().await;
    let client = site.web().initialize("small", LEGACY_VERSION).await;
    let few = budget(&client).await;
    let starts = house.starts("any");
    let caller = client.clone();
    let stuck = async move {
        caller
            .request("tools/call", calling("any/stuck", &json!({})))
            .await
    };
    let stuck = tokio::spawn(stuck);
    house.until_calls("any", 2).await;
    site.stop().await;
    assert_eq!(stuck.await.unwrap().error()["code"], -32603);
    let site = house.site().await;
    assert_eq!(budget(&client.clone().at(site.address())).await, few);
    assert_eq!(house.starts("any"), starts + 1);
    site.stop().await;

    // Without its key the session is unknown.
    let key = house.state().join("session.key");
    let mode = std::fs::metadata(&key).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    std::fs::remove_file(key).unwrap();
    let site = house.site().await;
    assert_eq!(status(&client.at(site.address())).await, 404);
    site.stop().await;
    house.stops_clean().await;
}
