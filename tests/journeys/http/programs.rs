//! `GET /api/v1/tools`: search and description for programs, with the token of a client.

use journeys::{fake::Step, house::fake, site::Site};
use serde_json::Value;

use crate::house_with_daemon;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

#[tokio::test]
async fn a_program_with_a_token_reads_the_tools_that_its_client_sees() {
    let notes = fake("notes").tool("add_note", Step::Echo);
    let bank = fake("bank").tool("pay", Step::Echo);
    let house = house_with_daemon([notes, bank]);
    house.configure_more(
        "[clients.ci]\ndeny = [\"bank\"]\n[http]\ntokens = { ci = \"${CI_TOKEN}\" }",
    );
    house.indexed().await;
    let mut command = house.command(["serve", "--http", "127.0.0.1:0"]);
    command.env("CI_TOKEN", TOKEN);
    let site = Site::start(command).await;
    let path = "/api/v1/tools?query=add%20note&limit=1";
    assert_eq!(site.web().ask("GET", path, "").await.status, 401);
    let web = site.web().with("authorization", &format!("Bearer {TOKEN}"));
    let read = async |path: &str| {
        let answer = web.ask("GET", path, "").await;
        let status = answer.status;
        let json: Value = serde_json::from_str(&answer.text().await).unwrap();
        (status, json)
    };
    let (status, found) = read(path).await;
    assert_eq!(
        (status, &found["tools"][0]["name"]),
        (200, &"notes/add_note".into())
    );
    let (status, tool) = read("/api/v1/tools/notes/add_note").await;
    assert_eq!((status, &tool["server"]), (200, &"notes".into()));
    let (_, all) = read("/api/v1/tools?limit=20").await;
    assert!(!all.to_string().contains("bank/"), "{all}");
    assert_eq!(read("/api/v1/tools/bank/pay").await.0, 403);
    assert_eq!(read("/api/v1/tools/nothing/here").await.0, 404);
    for path in ["/api/v1/status", "/api/v1/calls", "/api/v1/session"] {
        assert_eq!(web.ask("GET", path, "").await.status, 404, "{path}");
    }
    assert_eq!(web.ask("POST", "/api/v1/tools", "{}").await.status, 405);
    let foreign = web.clone().with("origin", "http://evil.test");
    assert_eq!(foreign.ask("GET", "/api/v1/tools", "").await.status, 403);
    site.stop().await;
    house.stops_clean().await;
}
