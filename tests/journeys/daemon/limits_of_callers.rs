//! The limits that the configuration sets for all callers of a daemon: quotas and profiles.

use journeys::{
    fake::{LEGACY_VERSION, Step},
    house::fake,
    page::Tab,
    site::Site,
};
use serde_json::json;

use crate::house_with_daemon;

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
    // They run at the same time: any of them may be the one.
    assert_eq!(many.matches(": any/echo ok]").count(), 1, "{many}");
    assert_eq!(many.matches("error quota: ").count(), 2, "{many}");
    let error = call(&one).await.bad();
    assert!(
        error.contains("the limit of 4 calls a day (quota 1"),
        "{error}"
    );
    assert!(error.contains("; resets in "), "{error}");
    house.stops_clean().await;
}

#[tokio::test]
async fn the_page_shows_quotas_with_their_use_profiles_and_redacted_results() {
    let house = house_with_daemon([fake("work").tool("echo", Step::Echo)]);
    house.configure_more(
        "[[quotas]]\ncalls = 5\nper = \"day\"\neach = [\"client\"]\n\
         [[rules]]\ndecision = \"deny\"\ntool = \"wipe\"\n\
         [[rules]]\ndecision = \"allow\"\ntool = \"echo\"\n\
         [redaction]\nenabled = true\n[profiles.job]\nallow = [\"work\"]\n",
    );
    house.indexed().await;
    let tab = Tab::open(&house).await;
    let folder = house.config().parent().unwrap().join("project");
    std::fs::create_dir_all(&folder).unwrap();
    house.write("project/.proxy.toml", "profile = \"job\"\n");
    let client = house.serve_from(&folder);
    client.initialize(LEGACY_VERSION).await;
    let secret = format!("ghp_{}", "a".repeat(36));
    client
        .execute("work/echo", json!({ "note": secret }))
        .await
        .good();
    client.execute("work/echo", json!({})).await.good();
    let quotas = &tab.get("/api/v1/configuration").await["quotas"];
    assert_eq!(quotas[0]["about"], "5 calls a day");
    let used = &quotas[0]["uses"][0];
    assert_eq!(
        (&used["used"], used["counted"].is_string()),
        (&json!(2), true)
    );
    let clients = &tab.get("/api/v1/clients").await["clients"];
    assert_eq!(clients[0]["profiles"], json!(["job (.proxy.toml)"]));
    assert_eq!(clients[0]["protocol"], LEGACY_VERSION);
    for (filter, expected) in [
        ("redacted=true", 1),
        ("rule=2", 2),
        ("rule=1", 0),
        ("outcome=ok", 2),
        ("outcome=denied", 0),
    ] {
        let found = tab.get(&format!("/api/v1/calls?{filter}")).await;
        assert_eq!(
            found["calls"].as_array().unwrap().len(),
            expected,
            "{filter}"
        );
    }
    let figures = tab.get("/api/v1/figures").await;
    assert_eq!(figures["total"]["redacted"], 1);
    house.stops_clean().await;
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

#[tokio::test]
async fn the_roots_of_a_client_select_a_profile() {
    let house = house_with_daemon([
        fake("work").tool("do", Step::Echo),
        fake("home").tool("rest", Step::Echo),
    ]);
    let folder = house.path("project");
    std::fs::create_dir_all(&folder).unwrap();
    house.configure_more(&format!(
        "[profiles.job]\nallow = [\"work\"]\nfolders = [{:?}]\n",
        folder.display().to_string()
    ));
    house.indexed().await;
    let client = house.serve();
    let roots = |folder: &std::path::Path| json!({"roots": [{"uri": format!("file://{}/inner", folder.display())}]});
    client.answers("roots/list", roots(&folder));
    let can = json!({"roots": {"listChanged": true}});
    client.initialize_with(LEGACY_VERSION, can).await;
    client.execute("work/do", json!({})).await.good();
    let refused = client.execute("home/rest", json!({})).await.bad();
    assert!(refused.contains("profiles.\"job\""), "{refused}");
    let status = house.cli(["status"]).await.ended(0).to_owned();
    assert!(status.contains("has the profile job (folder "), "{status}");
    // Another project is another profile, once the client says that its roots changed.
    client.answers("roots/list", roots(std::path::Path::new("/elsewhere")));
    client
        .notify("notifications/roots/list_changed", json!({}))
        .await;
    client.execute("home/rest", json!({})).await.good();
    house.stops_clean().await;
}
