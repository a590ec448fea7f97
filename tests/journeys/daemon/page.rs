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

/// Requests to every route: the status, the method, the path, the body.
const REQUESTS: &str = r#"
200 GET /api/v1/openapi.json
200 GET /api/v1/status
200 GET /api/v1/servers
200 GET /api/v1/servers/notes
200 POST /api/v1/servers/notes/restart {}
200 POST /api/v1/servers/notes/reindex {}
409 POST /api/v1/servers/notes/login {}
404 POST /api/v1/servers/notse/restart {}
404 POST /api/v1/servers/notes/explode {}
422 POST /api/v1/servers {"address": "no address"}
422 POST /api/v1/servers {"recipe": "circleci"}
403 POST /api/v1/servers {"command": ["sh"], "name": "x"}
404 POST /api/v1/questions/0 {"action": "decline"}
200 GET /api/v1/recipes
200 GET /api/v1/tools?query=add+a+note&limit=3
200 GET /api/v1/tools
200 GET /api/v1/tools/notes/add_note
422 POST /api/v1/tools/notes/add_note/forbid {"client": ""}
200 POST /api/v1/calls {"tool_name": "notes/add_note", "tool_input": {}}
422 POST /api/v1/calls {"tool_name": 1}
200 GET /api/v1/reviews
409 POST /api/v1/reviews {"definitions": [{"name": "x", "digest": "y"}], "accept": true}
200 GET /api/v1/calls?since=1h&limit=5
200 GET /api/v1/results/r0?part=1
404 POST /api/v1/running/0/cancel {}
200 GET /api/v1/questions
200 GET /api/v1/clients
404 POST /api/v1/clients/999/end {}
200 GET /api/v1/figures?by=day&days=7
200 GET /api/v1/configuration
200 POST /api/v1/policy/test {"tool_name": "notes/add_note"}
404 POST /api/v1/policy/test {"tool_name": "notes/nothing"}
404 POST /api/v1/changes/9/undo {}
"#;

/// Routes with journeys of their own.
const ELSEWHERE: [&str; 3] = [
    "GET /api/v1/live",
    "POST /api/v1/session",
    "DELETE /api/v1/session",
];

#[tokio::test]
async fn every_route_answers_as_it_is_described() {
    let (house, tab) = opened().await;
    let client = house.client().await;
    client.execute("notes/add_note", json!({})).await;
    let mut tried = ELSEWHERE.map(str::to_owned).to_vec();
    for line in REQUESTS.trim().lines() {
        let parts: Vec<&str> = line.splitn(4, ' ').collect();
        let status = parts[0].parse().unwrap();
        match parts[3..] {
            [body] => {
                let body = serde_json::from_str(body).unwrap();
                let answer = tab.post(parts[2], body, status).await;
                assert!(status == 200 || !text_of(&answer["error"]["message"]).is_empty());
            }
            _ => drop(tab.get(parts[2]).await),
        }
        tried.push(tab.find_route(parts[1], parts[2]));
    }
    let mut missing = tab.routes();
    missing.retain(|route| !tried.contains(route));
    assert!(missing.is_empty(), "{missing:?}");
    for query in ["since=yesterday", "slow=fast", "sicne=1h"] {
        let path = format!("/api/v1/calls?{query}");
        let answer = tab.send("GET", &path, None, &[]).await;
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
    let restarted = tab
        .post("/api/v1/servers/notes/restart", json!({}), 200)
        .await;
    assert!(text_of(&restarted["message"]).starts_with("notes: ready in "));
    live.until(|state| starts(state) > before).await;
    client.execute("notes/add_note", json!({})).await;
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
    tab.check("DELETE", "/api/v1/session", &ended);
    assert_eq!(live.end().await["next_step"], "proxy web");
    let after = tab.send("GET", "/api/v1/status", None, &[]).await;
    assert_eq!(
        (after.status, text_of(&after.json["error"]["code"])),
        (401, "unauthorized")
    );
    house.stops_clean().await;
}

fn with_http_token() -> House {
    let house = house_with_daemon([notes()]);
    house.configure_more(
        "[http]\nlisten = \"127.0.0.1:0\"\n[http.tokens]\nci = \"0123456789abcdef\"\n",
    );
    house
}

/// Requests for a session that are not from the page: a header, the code of the error, the status.
const FOREIGN: [(&str, &str, &str, u16); 6] = [
    ("origin", "http://127.0.0.1:1", "foreign_origin", 403),
    ("origin", "", "foreign_origin", 403),
    ("host", "evil.test", "foreign_host", 403),
    ("sec-fetch-site", "cross-site", "foreign_site", 403),
    ("sec-fetch-site", "", "foreign_site", 403),
    ("content-type", "text/plain", "unsupported_media_type", 415),
];

#[tokio::test]
async fn a_code_is_for_the_page_alone_and_used_once() {
    let house = with_http_token();
    let tab = Tab::address(&house).await;
    let code = json!({ "code": tab.code });
    let trade = async |body: &Value, headers: &[(&str, &str)]| {
        let path = "/api/v1/session";
        tab.send("POST", path, Some(body.clone()), headers).await
    };
    let error_of = |json: &Value| text_of(&json["error"]["code"]).to_owned();
    for (name, value, error, status) in FOREIGN {
        let answer = trade(&code, &[(name, value)]).await;
        assert_eq!(
            (answer.status, error_of(&answer.json).as_str()),
            (status, error)
        );
        assert!(status == 415 || answer.json["error"]["next_step"] == "proxy web");
    }
    let wrong = json!({ "code": "00000000000000000000000000000000" });
    let answer = trade(&wrong, &[]).await;
    assert_eq!(
        (answer.status, error_of(&answer.json).as_str()),
        (401, "code_used")
    );
    // A refused request leaves the code valid; the first accepted one uses it up.
    let session = trade(&code, &[]).await;
    let token = text_of(&session.json["token"]).to_owned();
    assert_eq!((session.status, token.len()), (200, 64));
    assert!(!session.headers.contains_key("set-cookie"));
    assert_eq!(trade(&code, &[]).await.status, 401);
    let logs = walk(&house.path("xdg-state")).into_iter();
    for log in logs.filter(|it| it.extension().is_some_and(|it| it == "log")) {
        let text = fs::read_to_string(log).unwrap();
        assert!(!text.contains(&tab.code) && !text.contains(&token));
    }
    house.stops_clean().await;
}

#[tokio::test]
async fn the_api_is_for_tokens_of_the_page_alone() {
    let house = with_http_token();
    let tab = Tab::open(&house).await;
    let path = "/api/v1/status";
    for wrong in ["0123456789abcdef", &tab.code] {
        let stranger = tab.clone().with_token(wrong);
        let answer = stranger.send("GET", path, None, &[]).await;
        assert_eq!(
            answer.status, 401,
            "neither an MCP token nor a code is a token of the page"
        );
    }
    assert_eq!(tab.send("GET", path, None, &[]).await.status, 200);
    // And a token of the page does not open MCP.
    let url = house.status().await["http"]["url"].clone();
    let address = text_of(&url).trim_start_matches("http://");
    let mut at_mcp = tab.clone();
    at_mcp.host = address.split('/').next().unwrap().to_owned();
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let foreign = at_mcp.send("POST", "/mcp", Some(ping), &[("origin", "")]);
    assert_eq!(foreign.await.status, 401);
    let cookie = [("authorization", ""), ("cookie", "token=x")];
    assert_eq!(tab.send("GET", path, None, &cookie).await.status, 401);
    let preflight = tab.send("OPTIONS", path, None, &[]).await;
    assert_eq!(preflight.status, 405);
    let mut names = preflight.headers.keys();
    assert!(!names.any(|it| it.as_str().starts_with("access-control-")));
    let large = json!({ "tool_name": "x".repeat(300_000) });
    let answer = tab.send("POST", "/api/v1/calls", Some(large), &[]).await;
    assert_eq!(answer.status, 413);
    // The index is for anybody on this machine, and holds nothing.
    let anybody = [("sec-fetch-site", "none"), ("authorization", "")];
    let index = tab.send("GET", "/", None, &anybody).await;
    let policy = index.headers["content-security-policy"].to_str().unwrap();
    assert!(index.status == 200 && policy.contains("default-src 'none'"));
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
    let forbid = "/api/v1/tools/notes/add_note/forbid";
    let dry_run = json!({"client": "cursor", "dry_run": true});
    let shown = tab.post(forbid, dry_run, 200).await;
    assert!(
        text_of(&shown["diff"]).contains("+tool = \"add_note\""),
        "{shown}"
    );
    assert_eq!(fs::read_to_string(house.config()).unwrap(), before);
    let added = tab.post(forbid, json!({"client": "cursor"}), 200).await;
    let mut live = tab.live().await;
    let asked = json!({"tool_name": "notes/add_note", "client": "cursor"});
    let verdict = async || {
        let tested = tab.post("/api/v1/policy/test", asked.clone(), 200).await;
        (
            text_of(&tested["decision"]).to_owned(),
            tested["rule"].clone(),
        )
    };
    assert_eq!(verdict().await, ("deny".to_owned(), json!(1)));
    let undo = format!("/api/v1/changes/{}/undo", added["undo"]);
    tab.post(&undo, json!({}), 200).await;
    assert_eq!(fs::read_to_string(house.config()).unwrap(), before);
    let again = tab.post(&undo, json!({}), 409).await;
    assert_eq!(again["error"]["code"], "changed");

    tab.post("/api/v1/servers/notes/disable", json!({}), 200)
        .await;
    live.until(|state| state["servers"]["notes"]["state"] == "disabled")
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
        "/api/v1/servers",
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
