//! Settings for a client by the name that it sends.

use journeys::{
    client::{Client, Reply},
    fake::{LEGACY_VERSION, Step},
    house::{House, fake},
    web::Web,
};
use serde_json::{Value, json};

use crate::house;

/// Creates a house with two servers, of which the guest may use one.
fn two_servers() -> House {
    let money = fake("bank")
        .tool("pay", Step::Echo)
        .tool("list_all", Step::Echo);
    let open = fake("files")
        .tool("read_file", Step::Lines(2_000))
        .tool("list_all", Step::Echo);
    let house = house([
        money
            .setting("category = \"finance\"")
            .setting("max_tokens = 3000"),
        open.setting("category = \"storage\"")
            .setting("max_tokens = 3000"),
    ]);
    house.configure_more(
        "[clients.\"guest*\"]\ndeny = [\"finance\"]\nmax_tokens = 500\n\
         [clients.strict]\nallow = [\"storage\"]",
    );
    house
}

/// A client of either transport.
enum Any {
    Stdio(Client),
    Http(Web),
}

impl Any {
    async fn call(&self, tool: &str, arguments: Value) -> Reply {
        match self {
            Self::Stdio(client) => client.call(tool, arguments).await,
            Self::Http(client) => client.call(tool, arguments).await,
        }
    }

    async fn search(&self, query: &str) -> String {
        self.call("search_tools", json!({ "query": query, "max_results": 20 }))
            .await
            .good()
    }

    async fn execute(&self, tool: &str) -> Reply {
        let arguments = json!({ "tool_name": tool, "tool_input": {} });
        self.call("execute_dynamic_tool", arguments).await
    }
}

async fn stdio(house: &House, name: &str) -> (Any, Value) {
    let client = house.serve();
    let params = json!({ "protocolVersion": LEGACY_VERSION, "capabilities": {},
        "clientInfo": { "name": name, "version": "1" } });
    let result = client.request("initialize", params).await.into_result();
    client.notify("notifications/initialized", json!({})).await;
    (Any::Stdio(client), result)
}

/// Checks that the client can only find and call the file server.
async fn sees_files_only(client: &Any, table: &str, rule: &str) {
    for query in [
        "pay",
        "*",
        "list all",
        "select:bank/pay,files/list_all",
        "finance bank",
    ] {
        let found = client.search(query).await;
        assert!(!found.contains("bank/"), "{query}: {found}");
        assert!(!found.contains("finance 2"), "{query}: {found}");
    }
    let listed = client.search("list all").await;
    assert!(listed.contains("files/list_all("), "{listed}");
    let steps = client
        .call("search_tools", json!({ "query": ["pay", "list all"] }))
        .await
        .good();
    assert!(!steps.contains("bank/"), "{steps}");
    let by_category = client
        .call(
            "search_tools",
            json!({ "query": "pay", "category": "finance" }),
        )
        .await
        .good();
    assert!(!by_category.contains("bank/"), "{by_category}");
    for denied in [
        client
            .call("describe_tool", json!({ "name": "bank/pay" }))
            .await
            .bad(),
        client.execute("bank/pay").await.bad(),
    ] {
        assert!(
            denied.starts_with("error denied: bank/pay is kept out by "),
            "{denied}"
        );
        assert!(denied.contains(rule) && denied.contains(table), "{denied}");
    }
    // A name that is unique among the visible tools is enough.
    client.execute("list_all").await.good();
    let slip = client.execute("bank/pai").await.bad();
    assert!(!slip.contains("bank/pay("), "{slip}");
}

#[tokio::test]
async fn a_client_sees_what_its_table_lets_it_see() {
    let house = two_servers();
    house.indexed().await;
    let site = house.site().await;
    let (guest, began) = stdio(&house, "Guest-App").await;
    let says = began["instructions"].as_str().unwrap();
    assert!(says.starts_with("Gateway to 2 tools: files 2. "), "{says}");
    let deny = ("[clients.\"guest*\"]", "deny \"finance\"");
    sees_files_only(&guest, deny.0, deny.1).await;
    let in_session = site.web().initialize("guest-2", LEGACY_VERSION).await;
    sees_files_only(&Any::Http(in_session), deny.0, deny.1).await;
    let modern = site.web().modern("guest");
    let found = modern
        .request("server/discover", json!({}))
        .await
        .into_result();
    assert!(
        !found["instructions"].to_string().contains("bank"),
        "{found}"
    );
    sees_files_only(&Any::Http(modern), deny.0, deny.1).await;
    let (strict, _) = stdio(&house, "strict").await;
    sees_files_only(
        &strict,
        "[clients.\"strict\"]",
        "allow, which does not name it",
    )
    .await;

    let (other, began) = stdio(&house, "other").await;
    let says = began["instructions"].as_str().unwrap();
    assert!(says.contains("bank 2, files 2"), "{says}");
    other.execute("bank/pay").await.good();
    let twice = other.execute("list_all").await.bad();
    assert!(twice.starts_with("error ambiguous_tool: "), "{twice}");
    site.stop().await;
    house.stops_clean().await;
}

#[journey]
async fn a_client_that_announces_little_is_named_by_its_command() {
    let house = two_servers();
    house.indexed().await;
    for (option, variable) in [(Some("Guest-App"), "strict"), (None, "guest-2")] {
        let mut command = house.command(["serve"]);
        if !house.has_daemon() {
            command.arg("--standalone");
        }
        command.args(option.iter().flat_map(|name| ["--client", name]));
        command.env("PROXY_CLIENT", variable);
        let client = house.keep(Client::start(command));
        client.initialize(LEGACY_VERSION).await;
        let deny = ("[clients.\"guest*\"]", "deny \"finance\"");
        sees_files_only(&Any::Stdio(client), deny.0, deny.1).await;
    }
    if house.has_daemon() {
        let status = house.status().await;
        let clients = status["clients"].as_array().unwrap().iter();
        let names: Vec<&str> = clients.filter_map(|it| it["name"].as_str()).collect();
        assert_eq!(names, ["Guest-App", "guest-2"]);
    }
    house.stops_clean().await;
}

#[tokio::test]
async fn a_client_gets_as_much_of_a_result_as_its_table_says() {
    let house = two_servers();
    house.indexed().await;
    let site = house.site().await;
    let guest = Any::Http(site.web().initialize("guest", LEGACY_VERSION).await);
    let other = Any::Http(site.web().initialize("other", LEGACY_VERSION).await);
    let shown = async |client: &Any| {
        let text = client.execute("files/read_file").await.good();
        let (_, footer) = text.rsplit_once("[cut: ").unwrap();
        let (shown, _) = footer.split_once(" of ").unwrap();
        shown.replace(',', "").parse::<u64>().unwrap()
    };
    let (of_guest, of_other) = (shown(&guest).await, shown(&other).await);
    assert!(of_guest <= 500, "{of_guest}");
    assert!((501..=3_000).contains(&of_other), "{of_other}");
    let arguments = json!({ "tool_name": "files/read_file", "tool_input": {}, "raw": true });
    let whole = guest.call("execute_dynamic_tool", arguments).await.good();
    assert!(!whole.contains("[cut: "), "a call may request more");
    site.stop().await;
    house.stops_clean().await;
}
