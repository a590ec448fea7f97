//! Messages about a missing login, and about a completed one, to models, users, the daemon, and
//! clients over HTTP.

use std::time::Duration;

use journeys::{
    client::DEADLINE,
    fake::{LEGACY_VERSION, META_CAPABILITIES},
    page::Tab,
};
use serde_json::{Value, json};
use tokio::time::{interval, timeout};

use super::logins::{LoginSetup, scene};
use crate::calling;

const REFUSED: &str = "error login_required: guarded: ";

/// Creates a setup after a login and a logout.
async fn logged_out() -> LoginSetup {
    let scene = scene(600, 0).await;
    scene.log_in().await;
    scene.run(&["login", "--end", "guarded"]).await.ended(0);
    scene
}

fn can_show_addresses() -> Value {
    json!({"elicitation": {"url": {}}})
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn what_needs_a_login_is_marked_and_a_login_ends_the_rest_at_once() {
    let scene = logged_out().await;
    let client = scene.house.client().await;
    let refused = client.execute("guarded/whoami", json!({})).await.bad();
    assert!(refused.starts_with(REFUSED), "{refused}");
    let hits = client.search("who calls").await.good();
    assert!(hits.contains("- Who calls [login required]"), "{hits}");
    let described = client.describe("guarded/whoami").await.good();
    assert!(
        described.contains("; login required: proxy login guarded"),
        "{described}"
    );
    let status = scene.run(&["status"]).await;
    assert!(status.stdout.contains("login required"), "{status:?}");

    scene.log_in().await;
    let mut looks = interval(Duration::from_millis(20));
    // Without any call, the login makes the daemon try the server again.
    let ready = async {
        while scene.house.status().await["servers"][0]["state"] != "ready" {
            looks.tick().await;
        }
    };
    let waited = timeout(DEADLINE, ready).await;
    assert!(waited.is_ok(), "{}", scene.house.status().await);
    let hits = client.search("who calls").await.good();
    assert!(!hits.contains("login required"), "{hits}");
    scene.end().await;
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn a_server_that_was_asked_without_a_login_is_marked_in_the_next_process_too() {
    let scene = logged_out().await;
    scene.run(&["reindex"]).await;
    let servers = scene.run(&["servers"]).await;
    assert!(servers.stdout.contains("login required"), "{servers:?}");
    assert!(
        servers.stdout.contains("next: proxy login guarded"),
        "{servers:?}"
    );
    let found = scene.run(&["search", "--standalone", "who", "calls"]).await;
    assert!(found.stdout.contains("[login required]"), "{found:?}");
    scene.end().await;
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn a_client_over_http_is_asked_if_it_is_on_this_machine() {
    let scene = logged_out().await;
    let site = scene.house.site().await;
    let web = site.web();
    let web = web
        .initialize_with("web", LEGACY_VERSION, can_show_addresses())
        .await;
    let call = calling("guarded/whoami", &json!({}));

    let passed_on = web.clone().with("x-forwarded-for", "203.0.113.7");
    let refused = passed_on
        .initialize_with("far", LEGACY_VERSION, can_show_addresses())
        .await;
    let refused = refused.request("tools/call", call.clone()).await.bad();
    assert!(refused.starts_with(REFUSED), "{refused}");

    let (_, mut answer) = web.send("tools/call", call).await;
    let question = answer.message().await;
    assert_eq!(question["params"]["mode"], "url", "{question}");
    let accepted = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}});
    assert_eq!(web.post(accepted.to_string()).await.status, 202);
    let page = scene
        .auth
        .browse(question["params"]["url"].as_str().unwrap())
        .await;
    assert!(page.contains("You are logged in"), "{page}");
    assert_eq!(answer.reply().await.good(), "client known, scopes read");
    site.stop().await;
    scene.end().await;
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn a_client_without_sessions_is_asked_by_the_answer_to_its_call() {
    let scene = logged_out().await;
    let site = scene.house.site().await;
    let web = site.web().modern("web");
    let mut call = calling("guarded/whoami", &json!({}));
    call["_meta"][META_CAPABILITIES] = can_show_addresses();
    let asked = web.request("tools/call", call.clone()).await.into_result();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let requests = asked["inputRequests"].as_object().unwrap();
    let (key, question) = requests.iter().next().unwrap();
    assert_eq!(question["params"]["mode"], "url", "{asked}");
    let page = scene
        .auth
        .browse(question["params"]["url"].as_str().unwrap())
        .await;
    assert!(page.contains("You are logged in"), "{page}");
    call["inputResponses"] = json!({key.as_str(): {"action": "accept"}});
    call["requestState"] = asked["requestState"].clone();
    let answered = web.request("tools/call", call).await;
    assert_eq!(answered.good(), "client known, scopes read");
    site.stop().await;
    scene.end().await;
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn a_person_logs_in_from_the_page() {
    let scene = logged_out().await;
    scene.run(&["reindex"]).await;
    let tab = Tab::open(&scene.house).await;
    let mut live = tab.live().await;
    let state = |state: &Value| state["servers"]["guarded"].clone();
    live.until(|it| state(it)["state"] == "login required")
        .await;
    let begun = tab
        .post("/api/v1/servers/guarded/login", json!({}), 200)
        .await;
    live.until(|it| state(it)["login_address"] == begun["address"])
        .await;
    // Another click leads to the same login.
    let again = tab
        .post("/api/v1/servers/guarded/login", json!({}), 200)
        .await;
    assert_eq!(again["address"], begun["address"]);
    let page = scene.auth.browse(begun["address"].as_str().unwrap()).await;
    assert!(page.contains("You are logged in"), "{page}");
    live.until(|it| state(it)["login"].is_object() && state(it)["state"] != "login required")
        .await;
    assert!(state(&live.state)["login_address"].is_null());
    let client = scene.house.client().await;
    let told = client.execute("guarded/whoami", json!({})).await.good();
    assert_eq!(told, "client known, scopes read");
    drop(live);
    scene.end().await;
}
