//! Every mistake in the configuration at once, with its place and the next step.

use journeys::house::{Fake, House};

use crate::{house, programs};

/// The configuration is refused with these words and exit code 2, whatever the verb.
async fn check(toml: &str, words: &[&str]) {
    let house = house::<Fake>([]);
    house.configure(toml);
    for args in [&["config", "check"][..], &["list"], &["serve"]] {
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
        "[servers.a]\ncommand = \"x\"\nargs = []\n",
        &["config.toml:3", "args"],
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
