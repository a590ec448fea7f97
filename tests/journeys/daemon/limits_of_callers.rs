//! The limits that the configuration sets for all callers of a daemon: quotas and profiles.

use journeys::{
    fake::{LEGACY_VERSION, Step},
    house::fake,
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
