//! All mistakes of a configuration are reported at once, with their place and the next step.

use journeys::{
    fake::Step,
    house::{Fake, House, fake},
};
use serde_json::json;

use crate::{house, programs};

/// Checks that every command refuses the configuration with these words and exit code 2.
async fn check(toml: &str, words: &[&str]) {
    let house = house::<Fake>([]);
    house.configure(toml);
    for args in [
        &["config", "check"][..],
        &["search", "*"],
        &["serve", "--http"],
    ] {
        let output = house.cli(args.iter().copied()).await;
        assert_eq!(
            output.code,
            Some(2),
            "{args:?}\n{}\n{}",
            output.stdout,
            output.stderr
        );
        let said = format!("{}{}", output.stdout, output.stderr);
        for word in words {
            assert!(
                said.contains(word),
                "{args:?}: `{word}` is missing:\n{said}"
            );
        }
        assert!(!said.contains("panicked"), "{said}");
    }
}

#[journey]
async fn a_client_is_served_and_told_and_served_well_once_the_file_is_mended() {
    let house = house([fake("any").tool("echo", Step::Echo)]);
    house.indexed().await;
    let asked = house.received_method("any", "tools/list").len();
    let good = std::fs::read_to_string(house.config()).unwrap();
    house.configure("[servers.any]\ncomand = \"x\"\n");
    let client = house.serve();
    let greeting = client.initialize("2025-11-25").await;
    let says = greeting["instructions"].as_str().unwrap();
    assert!(says.contains("configuration cannot be used"), "{says}");
    assert_eq!(client.tools_list().await.len(), 3);
    let found = client.search("do echo").await.good();
    assert!(
        found.contains("comand") && found.contains("`command`"),
        "{found}"
    );
    let reply = client.execute("any/echo", json!({})).await;
    assert!(
        reply.bad().starts_with("error misconfigured: "),
        "{}",
        reply.bad()
    );
    house.configure(&good);
    client.until_search_finds("do echo", "any/echo(").await;
    client.execute("any/echo", json!({})).await.good();
    assert_eq!(
        house.received_method("any", "tools/list").len(),
        asked,
        "the snapshot still exists"
    );
    house.stops_clean().await;
}

#[tokio::test]
async fn each_mistake_is_named() {
    check("this is = = no toml", &["config.toml:1"]).await;
    check(
        "[servers.time]\ncomand = \"x\"\n",
        &["config.toml:2", "comand", "`command`"],
    )
    .await;
    check(
        "[servers.a]\ncommand = \"x\"\nurl = \"https://example.com\"\n",
        &["command", "url"],
    )
    .await;
    check("[servers.a]\n", &["servers.a", "command"]).await;
    check("[servers.\"Bad Name\"]\ncommand = \"x\"\n", &["Bad Name"]).await;
    check("[servers.proxy]\ncommand = \"x\"\n", &["proxy"]).await;
    check(
        "[servers.a]\ncommand = 5\n",
        &["config.toml:2", "servers.a.command"],
    )
    .await;
    check(
        "[servers.a]\ncommand = \"x\"\nargs = []\ntools = { allow = [] }\n",
        &["config.toml:4", "tools.allow"],
    )
    .await;
}

#[tokio::test]
async fn all_mistakes_come_at_once() {
    let toml = "[servers.a]\ncomand = \"x\"\n\n[servers.b]\ncommand = 5\n\n[servers.Big]\nurl = \"https://example.com\"\n";
    check(toml, &["comand", "servers.b.command", "Big"]).await;
}

#[tokio::test]
async fn a_file_that_was_named_must_be_there() {
    let house = House::without_config(&programs());
    let output = house.cli(["--config", "no-such.toml", "list"]).await;
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("no-such.toml"), "{}", output.stderr);
}

#[tokio::test]
async fn a_good_configuration_is_said_to_be_good() {
    let house = house::<Fake>([]);
    house.configure("[servers.time]\ncommand = \"uvx\"\nargs = [\"mcp-server-time\"]\n");
    house.cli(["config", "check"]).await.ended(0);
}

#[tokio::test]
async fn an_unset_variable_names_itself_and_its_server_and_stops_nobody_else() {
    use journeys::fake::Step;
    let house = house([journeys::house::fake("good").tool("echo", Step::Echo)]);
    house.configure_more(
        "[servers.needy]\ncommand = \"sh\"\nenv = { KEY = \"${NO_SUCH_VARIABLE}\" }\n",
    );
    let output = house.cli(["reindex"]).await;
    let said = format!("{}{}", output.stdout, output.stderr);
    assert!(
        said.contains("NO_SUCH_VARIABLE") && said.contains("needy"),
        "{said}"
    );
    let client = house.client().await;
    client
        .execute("good/echo", serde_json::json!({}))
        .await
        .good();
    house.stops_clean().await;
}
