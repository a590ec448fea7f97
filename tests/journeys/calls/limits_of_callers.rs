//! The limits that the configuration sets for callers: arguments, quotas, redaction and profiles.

use std::path::{Path, PathBuf};

use journeys::{
    fake::{LEGACY_VERSION, Step},
    house::{Fake, fake},
    site::Site,
};
use serde_json::json;

use crate::{handle, house, house_with_daemon};

const KEY: &str = "ghp_0123456789abcdef0123";

fn github() -> Fake {
    let definition = json!({"name": "create", "inputSchema": {"type": "object",
        "required": ["owner", "title"], "properties": {"owner": {"type": "string"},
        "title": {"type": "string"}, "limit": {"type": "integer"}}}});
    fake("github")
        .tool_as(definition, Step::Echo)
        .setting("arguments = { owner = { fixed = \"acme\" }, limit = { default = 7 } }")
}

#[journey]
async fn a_fixed_argument_is_sent_and_no_form_of_a_call_sets_it() {
    let house = house([github()]);
    house
        .configure_more("[[rules]]\ndecision = \"deny\"\narguments = { \"/owner\" = \"other\" }\n");
    house.indexed().await;
    let client = house.client().await;
    let found = client.search("create").await.good();
    let is_hidden = !found.contains("owner") && found.contains(r#""default":7"#);
    assert!(is_hidden, "{found}");
    let sent = client.execute("github/create", json!({"title": "a"})).await;
    let sent = sent.good();
    assert!(
        sent.contains(r#""owner":"acme""#) && sent.contains(r#""limit":7"#),
        "{sent}"
    );
    for input in [
        json!({"title": "a", "owner": "evil"}),
        json!({"arguments": {"title": "a", "owner": "evil"}}),
    ] {
        let error = client.execute("github/create", input).await.bad();
        assert!(
            error.contains("owner: the configuration sets this argument"),
            "{error}"
        );
    }
    let flat = json!({"tool_name": "github/create", "title": "a", "owner": "evil"});
    client.call("execute_dynamic_tool", flat).await.bad();
    let script = json!({"script": "await github.create({title: 'b'})"});
    let in_script = client.execute("proxy/run_script", script).await.good();
    assert!(in_script.contains("acme"), "{in_script}");
    let script = json!({"script": "await github.create({title: 'b', owner: 'evil'})"});
    client.execute("proxy/run_script", script).await.bad();
    let many = json!({"calls": [{"tool_name": "create", "tool_input": {"title": "c"}}]});
    let many = client.execute("proxy/call_many", many).await.good();
    assert!(many.contains("acme"), "{many}");
    house.stops_clean().await;
}

#[tokio::test]
async fn a_quota_counts_all_clients_and_continues_after_a_restart() {
    let house = house_with_daemon([fake("any").tool("echo", Step::Echo)]);
    house.configure_more("[[quotas]]\ncalls = 4\nper = \"day\"\nserver = \"any\"\n");
    house.indexed().await;
    let (one, two) = (house.client().await, house.client().await);
    let call =
        async |client: &journeys::client::Client| client.execute("any/echo", json!({})).await;
    for client in [&one, &two, &one] {
        call(client).await.good();
    }
    house.cli(["daemon", "restart"]).await.ended(0);
    let many = json!({"calls": vec![json!({"tool_name": "any/echo", "tool_input": {}}); 3]});
    let many = two.execute("proxy/call_many", many).await;
    let many = many.good();
    assert!(many.contains("[1 of 3: any/echo ok]"), "{many}");
    assert_eq!(many.matches("error quota: ").count(), 2, "{many}");
    let error = call(&one).await.bad();
    assert!(
        error.contains("the limit of 4 calls a day (quota 1"),
        "{error}"
    );
    assert!(error.contains("; resets in "), "{error}");
    house.stops_clean().await;
}

#[journey]
async fn what_a_server_sends_is_redacted_before_anything_keeps_it() {
    let lines: Vec<String> = (0..3_000).map(|it| format!("{it} {KEY}")).collect();
    let error = json!({"code": -32000, "message": format!("no {KEY}")});
    let server = fake("vault")
        .tool("long", Step::Text(lines.join("\n")))
        .tool(
            "structured",
            Step::Result(json!({"content": [], "structuredContent": {KEY: KEY}})),
        )
        .tool(
            "fail",
            vec![Step::Stderr(format!("stderr {KEY}\n")), Step::Error(error)],
        )
        .setting("redact = true");
    let house = house([
        server,
        fake("other").tool("plain", Step::Text(KEY.to_owned())),
    ]);
    house.indexed().await;
    let client = house.client().await;
    let first = client.execute("vault/long", json!({})).await.good();
    let read = json!({"handle": handle(&first), "grep": "2999 "});
    let rest = client.execute("proxy/read_result", read).await.good();
    let structured = client.execute("vault/structured", json!({})).await.good();
    let failed = client.execute("vault/fail", json!({})).await.bad();
    for text in [&first, &rest, &structured, &failed] {
        assert!(
            text.contains("[redacted: github token]") && !text.contains(KEY),
            "{text}"
        );
    }
    let plain = client.execute("other/plain", json!({})).await.good();
    assert!(plain.contains(KEY), "{plain}");
    client.close().await;
    let kept = files_with(&house.state(), KEY);
    assert!(kept.is_empty(), "{kept:?}");
    house.stops_clean().await;
}

/// The files below a folder that contain this text.
fn files_with(folder: &Path, text: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let found = entries.flat_map(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return files_with(&path, text);
        }
        let bytes = std::fs::read(&path).unwrap_or_default();
        let has = String::from_utf8_lossy(&bytes).contains(text);
        has.then_some(path).into_iter().collect()
    });
    found.collect()
}

#[tokio::test]
async fn a_profile_is_chosen_by_command_project_and_address() {
    let house = house_with_daemon([
        fake("work").tool("do", Step::Echo),
        fake("home").tool("rest", Step::Echo),
    ]);
    house.configure_more(
        "[profiles.job]\nallow = [\"work\"]\n[profiles.none]\ndeny = [\"*\"]\n\
         [http]\nlisten = \"127.0.0.1:0\"\n",
    );
    house.indexed().await;
    let folder = house.config().parent().unwrap().join("project/inner");
    std::fs::create_dir_all(&folder).unwrap();
    house.write("project/.proxy.toml", "profile = \"job\"\n");
    let client = house.serve_from(&folder);
    client.initialize(LEGACY_VERSION).await;
    client.execute("work/do", json!({})).await.good();
    let refused = client.execute("home/rest", json!({})).await.bad();
    assert!(refused.contains("profiles.\"job\""), "{refused}");
    let status = house.cli(["status"]).await.ended(0).to_owned();
    assert!(
        status.contains("has the profile job (.proxy.toml)"),
        "{status}"
    );
    let unknown = house.cli(["serve", "--profile", "jop"]).await;
    assert!(
        unknown.stderr.contains("there are: job, none"),
        "{}",
        unknown.stderr
    );

    let site = Site::start(house.command(["serve", "--http"])).await;
    let web = site
        .web()
        .under("/mcp/job")
        .initialize("a", LEGACY_VERSION)
        .await;
    web.execute("work/do", json!({})).await.good();
    web.execute("home/rest", json!({})).await.bad();
    // A session belongs to the address at which it began.
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert_eq!(web.clone().under("/mcp").post(ping).await.status, 404);
    assert_eq!(site.web().under("/mcp/jop").post(ping).await.status, 404);
    site.stop().await;
    house.stops_clean().await;
}
