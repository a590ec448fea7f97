//! The web page of the daemon: its API, its stream, and who may use them.

use std::{fs, time::Duration};

use journeys::{
    fake::Step,
    house::{Fake, House, fake},
    page::Tab,
};
use serde_json::{Value, json};

use crate::house_with_daemon;

const LOOK_EVERY: Duration = Duration::from_millis(20);

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn notes() -> Fake {
    fake("notes")
        .tool("add_note", Step::Echo)
        .tool("wipe", Step::Echo)
}

async fn opened() -> (House, Tab) {
    let house = house_with_daemon([notes()]);
    house.configure_more("[[rules]]\ndecision = \"deny\"\ntool = \"wipe\"\n");
    house.cli(["reindex"]).await.ended(0);
    let tab = Tab::open(&house).await;
    (house, tab)
}

#[tokio::test]
async fn every_route_answers_as_it_is_described() {
    let (house, tab) = opened().await;
    let client = house.client().await;
    client.execute("notes/add_note", json!({})).await;
    let run = json!({"tool_name": "notes/add_note", "tool_input": {}});
    let mut tried = Vec::new();
    for (route, path, body, status) in [
        (
            "GET /api/v1/openapi.json",
            "/api/v1/openapi.json",
            None,
            200,
        ),
        ("GET /api/v1/overview", "/api/v1/overview", None, 200),
        ("GET /api/v1/servers", "/api/v1/servers", None, 200),
        (
            "GET /api/v1/servers/{name}",
            "/api/v1/servers/notes",
            None,
            200,
        ),
        (
            "POST /api/v1/servers/{name}/{action}",
            "/api/v1/servers/notes/restart",
            Some(json!({})),
            200,
        ),
        (
            "POST /api/v1/servers/{name}/{action}",
            "/api/v1/servers/notes/reindex",
            Some(json!({})),
            200,
        ),
        (
            "POST /api/v1/servers/{name}/{action}",
            "/api/v1/servers/notse/restart",
            Some(json!({})),
            404,
        ),
        (
            "POST /api/v1/servers/{name}/{action}",
            "/api/v1/servers/notes/explode",
            Some(json!({})),
            404,
        ),
        (
            "POST /api/v1/servers",
            "/api/v1/servers",
            Some(json!({"address": "no address"})),
            422,
        ),
        (
            "POST /api/v1/servers",
            "/api/v1/servers",
            Some(json!({"recipe": "circleci"})),
            422,
        ),
        (
            "POST /api/v1/servers",
            "/api/v1/servers",
            Some(json!({"command": ["sh"], "name": "x"})),
            403,
        ),
        (
            "GET /api/v1/recipes",
            "/api/v1/recipes?query=memory",
            None,
            200,
        ),
        (
            "GET /api/v1/tools",
            "/api/v1/tools?query=add+a+note&limit=3",
            None,
            200,
        ),
        ("GET /api/v1/tools", "/api/v1/tools", None, 200),
        (
            "GET /api/v1/tools/{server}/{tool}",
            "/api/v1/tools/notes/add_note",
            None,
            200,
        ),
        (
            "POST /api/v1/calls",
            "/api/v1/calls",
            Some(run.clone()),
            200,
        ),
        (
            "POST /api/v1/calls",
            "/api/v1/calls",
            Some(json!({"tool_name": 1})),
            422,
        ),
        ("GET /api/v1/reviews", "/api/v1/reviews", None, 200),
        (
            "POST /api/v1/reviews",
            "/api/v1/reviews",
            Some(json!({"name": "x", "digest": "y", "accept": true})),
            409,
        ),
        (
            "GET /api/v1/calls",
            "/api/v1/calls?since=1h&limit=5",
            None,
            200,
        ),
        (
            "GET /api/v1/results/{handle}",
            "/api/v1/results/r0?part=1",
            None,
            200,
        ),
        (
            "POST /api/v1/running/{id}/cancel",
            "/api/v1/running/0/cancel",
            Some(json!({})),
            404,
        ),
        ("GET /api/v1/clients", "/api/v1/clients", None, 200),
        (
            "POST /api/v1/clients/{number}/end",
            "/api/v1/clients/999/end",
            Some(json!({})),
            404,
        ),
        (
            "GET /api/v1/figures",
            "/api/v1/figures?by=day&days=7",
            None,
            200,
        ),
        (
            "GET /api/v1/configuration",
            "/api/v1/configuration",
            None,
            200,
        ),
        (
            "POST /api/v1/policy/test",
            "/api/v1/policy/test",
            Some(run),
            200,
        ),
        (
            "POST /api/v1/rules",
            "/api/v1/rules",
            Some(json!({"rule": {"decision": "maybe"}})),
            422,
        ),
        (
            "POST /api/v1/rules/{number}/remove",
            "/api/v1/rules/9/remove",
            Some(json!({"rule": {}})),
            404,
        ),
        (
            "POST /api/v1/changes/{id}/undo",
            "/api/v1/changes/9/undo",
            Some(json!({})),
            404,
        ),
    ] {
        match body {
            None => drop(tab.get(path).await),
            Some(body) => {
                let answer = tab.post(path, body, status).await;
                assert!(status == 200 || !text_of(&answer["error"]["message"]).is_empty());
            }
        }
        tried.push(route.to_owned());
    }
    // These have tests of their own.
    tried.extend(
        [
            "GET /api/v1/live",
            "POST /api/v1/session",
            "DELETE /api/v1/session",
        ]
        .map(str::to_owned),
    );
    let missing: Vec<String> = tab
        .routes()
        .into_iter()
        .filter(|it| !tried.contains(it))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    for path in [
        "/api/v1/calls?since=yesterday",
        "/api/v1/calls?slow=fast",
        "/api/v1/calls?sicne=1h",
    ] {
        let answer = tab.send("GET", path, None, &[]).await;
        assert_eq!(answer.status, 400, "{path}");
    }
    house.stops_clean().await;
}

#[tokio::test]
async fn the_stream_follows_restarts_reloads_renames_and_clients() {
    let (house, tab) = opened().await;
    let mut live = tab.live().await;
    let mut second = tab.live().await;
    let has_client = |state: &Value| {
        state["clients"]
            .as_object()
            .is_some_and(|it| !it.is_empty())
    };
    let starts = |state: &Value| state["servers"]["notes"]["starts"].as_u64();
    let client = house.client().await;
    live.until(has_client).await;
    client.execute("notes/add_note", json!({})).await;
    live.until(|state| state["servers"]["notes"]["state"] == "ready")
        .await;
    let before = starts(&live.state);
    tab.post("/api/v1/servers/notes/restart", json!({}), 200)
        .await;
    client.execute("notes/add_note", json!({})).await;
    live.until(|state| starts(state) > before).await;
    live.until(|state| state["totals"]["totals"]["calls"].as_u64() >= Some(2))
        .await;

    house.configure_more("broken =");
    live.until(|state| state["attention"]["mistakes"]["kind"] == "mistakes")
        .await;
    let config = fs::read_to_string(house.config()).unwrap();
    house.configure(config.trim_end_matches("broken ="));
    live.until(|state| state["attention"]["mistakes"].is_null())
        .await;

    house
        .cli(["servers", "rename", "notes", "memo"])
        .await
        .ended(0);
    live.until(|state| state["servers"]["notes"].is_null() && state["servers"]["memo"].is_object())
        .await;
    client.close().await;
    live.until(|state| !has_client(state)).await;
    // A second tab reads the same changes.
    second
        .until(|state| !has_client(state) && state["servers"]["memo"].is_object())
        .await;
    drop(second);

    let ended = tab
        .send("DELETE", "/api/v1/session", Some(json!({})), &[])
        .await;
    assert_eq!(ended.status, 200);
    assert_eq!(live.end().await["next_step"], "proxy web");
    let after = tab.send("GET", "/api/v1/overview", None, &[]).await;
    assert_eq!(
        (after.status, text_of(&after.json["error"]["code"])),
        (401, "unauthorized")
    );
    house.stops_clean().await;
}

#[tokio::test]
async fn nobody_but_the_page_uses_the_api() {
    let house = house_with_daemon([notes()]);
    house.configure_more(
        "[http]\nlisten = \"127.0.0.1:0\"\n[http.tokens]\nci = \"0123456789abcdef\"\n",
    );
    let tab = Tab::address(&house).await;
    let code = |code: &str| Some(json!({ "code": code }));
    let check = async |headers: &[(&str, &str)], body: Option<Value>, expected: (u16, &str)| {
        let answer = tab.send("POST", "/api/v1/session", body, headers).await;
        assert_eq!(
            (answer.status, text_of(&answer.json["error"]["code"])),
            expected
        );
        assert_eq!(
            answer.json["error"]["next_step"].is_string(),
            answer.status / 100 == 4 && answer.status != 415
        );
    };
    check(
        &[("origin", "http://127.0.0.1:1")],
        code(&tab.code),
        (403, "foreign_origin"),
    )
    .await;
    check(&[("origin", "")], code(&tab.code), (403, "foreign_origin")).await;
    check(
        &[("host", "evil.test")],
        code(&tab.code),
        (403, "foreign_host"),
    )
    .await;
    check(
        &[("sec-fetch-site", "cross-site")],
        code(&tab.code),
        (403, "foreign_site"),
    )
    .await;
    check(
        &[("sec-fetch-site", "")],
        code(&tab.code),
        (403, "foreign_site"),
    )
    .await;
    check(
        &[("content-type", "text/plain")],
        code(&tab.code),
        (415, "unsupported_media_type"),
    )
    .await;
    check(
        &[],
        code("00000000000000000000000000000000"),
        (401, "code_used"),
    )
    .await;
    // None of these used up the code, and the first use does.
    let session = tab
        .send("POST", "/api/v1/session", code(&tab.code), &[])
        .await;
    let token = text_of(&session.json["token"]).to_owned();
    assert_eq!((session.status, token.len()), (200, 64));
    assert!(!session.headers.contains_key("set-cookie"));
    check(&[], code(&tab.code), (401, "code_used")).await;

    for wrong in ["0123456789abcdef", &tab.code] {
        let stranger = tab.clone().with_token(wrong);
        let answer = stranger.send("GET", "/api/v1/overview", None, &[]).await;
        assert_eq!(
            answer.status, 401,
            "neither an MCP token nor a code is a token of the page"
        );
    }
    let owner = tab.clone().with_token(&token);
    assert_eq!(
        owner
            .send("GET", "/api/v1/overview", None, &[])
            .await
            .status,
        200
    );
    let preflight = owner.send("OPTIONS", "/api/v1/overview", None, &[]).await;
    assert_eq!(preflight.status, 405);
    let names = preflight.headers.keys().map(|it| it.as_str().to_owned());
    assert!(
        !names
            .into_iter()
            .any(|it| it.starts_with("access-control-"))
    );
    let large = json!({ "tool_name": "x".repeat(300_000) });
    assert_eq!(
        owner
            .send("POST", "/api/v1/calls", Some(large), &[])
            .await
            .status,
        413
    );
    // The index is for anybody on this machine, and holds nothing.
    let index = tab
        .send("GET", "/", None, &[("sec-fetch-site", "none")])
        .await;
    assert_eq!(index.status, 200);
    assert!(
        text_of_header(&index.headers["content-security-policy"]).contains("default-src 'none'")
    );
    let log = house.path("xdg-state");
    let logs = walk(&log)
        .into_iter()
        .filter(|it| it.extension().is_some_and(|it| it == "log"));
    for log in logs {
        let text = fs::read_to_string(log).unwrap();
        assert!(!text.contains(&tab.code) && !text.contains(&token));
    }
    house.stops_clean().await;
}

#[tokio::test]
async fn a_tab_learns_that_the_daemon_stops() {
    let (house, tab) = opened().await;
    let mut live = tab.live().await;
    let (ended, _) = tokio::join!(live.end(), house.cli(["daemon", "stop"]));
    assert_eq!(
        (text_of(&ended["message"]), text_of(&ended["next_step"])),
        ("the daemon stops", "proxy web")
    );
    house.stops_clean().await;
}

fn text_of_header(value: &hyper::header::HeaderValue) -> &str {
    value.to_str().unwrap()
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.flat_map(|entry| {
        let path = entry.path();
        if path.is_dir() {
            walk(&path)
        } else {
            vec![path]
        }
    });
    paths.collect()
}

#[tokio::test]
async fn a_change_of_the_configuration_shows_its_lines_and_is_undone() {
    let (house, tab) = opened().await;
    let before = fs::read_to_string(house.config()).unwrap();
    let rule = json!({"decision": "deny", "tool": "add_note", "client": "cursor"});
    let shown = tab
        .post("/api/v1/rules", json!({"rule": rule, "dry_run": true}), 200)
        .await;
    assert!(
        text_of(&shown["diff"]).contains("+tool = \"add_note\""),
        "{shown}"
    );
    assert_eq!(fs::read_to_string(house.config()).unwrap(), before);
    let added = tab.post("/api/v1/rules", json!({"rule": rule}), 200).await;
    let mut live = tab.live().await;
    let asked = json!({"tool_name": "notes/add_note", "client": "cursor"});
    let verdict = async || {
        let tested = tab.post("/api/v1/policy/test", asked.clone(), 200).await;
        (
            text_of(&tested["decision"]).to_owned(),
            tested["rule"].clone(),
        )
    };
    while verdict().await != ("deny".to_owned(), json!(1)) {
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let wrong = tab
        .post(
            "/api/v1/rules/1/remove",
            json!({"rule": {"decision": "allow"}}),
            409,
        )
        .await;
    assert_eq!(wrong["error"]["code"], "changed");
    let mistake = json!({"rule": {"decision": "maybe", "tool": "x"}});
    let mistake = tab.post("/api/v1/rules", mistake, 422).await;
    assert_eq!(mistake["error"]["field"], "decision");
    let undo = format!("/api/v1/changes/{}/undo", added["undo"]);
    tab.post(&undo, json!({}), 200).await;
    assert_eq!(fs::read_to_string(house.config()).unwrap(), before);
    tab.post(&undo, json!({}), 409).await;

    tab.post("/api/v1/servers/notes/disable", json!({}), 200)
        .await;
    live.until(|state| state["servers"]["notes"]["state"] == "off")
        .await;
    tab.post("/api/v1/servers/notes/restart", json!({}), 409)
        .await;
    let secret = "sk-ant-api03-0123456789abcdefghijklmnopqrstuvwxyz";
    let remote =
        json!({"address": format!("https://notes.example.com/mcp?token={secret}"), "name": "far"});
    let added = tab.post("/api/v1/servers", remote, 200).await;
    assert_eq!(added["name"], "far");
    assert!(
        !added.to_string().contains(secret),
        "a secret goes in and never comes out"
    );
    live.until(|state| state["servers"]["far"].is_object())
        .await;
    for path in [
        "/api/v1/servers/far",
        "/api/v1/configuration",
        "/api/v1/overview",
    ] {
        assert!(!tab.get(path).await.to_string().contains(secret), "{path}");
    }
    house.stops_clean().await;
}

#[tokio::test]
async fn a_person_ends_a_call_and_a_session() {
    let slow = fake("slow").tool("wait", Step::UntilCancelled);
    let house = house_with_daemon([slow]);
    house.cli(["reindex"]).await.ended(0);
    let tab = Tab::open(&house).await;
    let mut live = tab.live().await;
    let client = house.client().await;
    let arguments = json!({"tool_name": "slow/wait", "tool_input": {}});
    let calling = client.call("execute_dynamic_tool", arguments);
    let ending = async {
        live.until(|state| {
            state["running"]
                .as_object()
                .is_some_and(|it| !it.is_empty())
        })
        .await;
        let running = live.state["running"].as_object().unwrap();
        let (id, row) = running.iter().next().unwrap();
        assert_eq!(row["tool"], "slow/wait");
        tab.post(&format!("/api/v1/running/{id}/cancel"), json!({}), 200)
            .await;
    };
    let (reply, ()) = tokio::join!(calling, ending);
    assert!(reply.bad().contains("a person ended the call"));
    live.until(|state| {
        state["running"]
            .as_object()
            .is_some_and(serde_json::Map::is_empty)
    })
    .await;
    // The log is written after the answer.
    while tab.get("/api/v1/calls?failures=true").await["calls"][0]["outcome"] != "cancelled" {
        tokio::time::sleep(LOOK_EVERY).await;
    }

    let number = live.state["clients"]
        .as_object()
        .unwrap()
        .keys()
        .next()
        .unwrap()
        .clone();
    tab.post(&format!("/api/v1/clients/{number}/end"), json!({}), 200)
        .await;
    live.until(|state| {
        state["clients"]
            .as_object()
            .is_some_and(serde_json::Map::is_empty)
    })
    .await;
    let reply = client.search("wait").await;
    assert!(
        reply.raw().contains("a person ended this session"),
        "{reply:?}"
    );
    house.stops_clean().await;
}
