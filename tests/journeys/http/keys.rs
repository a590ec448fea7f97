//! Addresses, tokens and certificates that permit listening and access.

use bytes::Bytes;
use journeys::{
    fake::{LEGACY_VERSION, Step},
    house::fake,
    site::Site,
};
use serde_json::json;

use crate::{handle, house, house_with_daemon};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

#[tokio::test]
async fn an_open_address_is_not_served_without_a_token() {
    let house = house_with_daemon([fake("any").tool("echo", Step::Echo)]);
    let refused = house.cli(["serve", "--http", "0.0.0.0:0"]).await;
    refused.ended(2);
    assert!(
        refused.stderr.contains("[http.tokens]"),
        "{}",
        refused.stderr
    );
    house.cli(["serve", "--http", "nonsense"]).await.ended(2);
    let nowhere = house.cli(["serve", "--http"]).await;
    nowhere.ended(2);
    assert!(nowhere.stderr.contains("`listen`"), "{}", nowhere.stderr);
    let config = std::fs::read_to_string(house.config()).unwrap();
    for (tokens, why) in [
        (
            "tokens = { a = \"${NO_SUCH_TOKEN}\" }",
            "`NO_SUCH_TOKEN` is not set",
        ),
        ("tokens = { a = \"short\" }", "fewer than 16 characters"),
        ("token_files = { a = \"no-such-file\" }", "cannot read"),
    ] {
        house.configure(&format!("{config}\n[http]\n{tokens}"));
        let refused = house.cli(["serve", "--http", "0.0.0.0:0"]).await;
        refused.ended(2);
        assert!(refused.stderr.contains(why), "{}", refused.stderr);
        assert!(!refused.stderr.contains("short"), "{}", refused.stderr);
    }
    house.stops_clean().await;
}

#[tokio::test]
async fn tokens_come_from_a_file_and_from_the_environment() {
    let house = house_with_daemon([fake("any").tool("echo", Step::Echo)]);
    house.configure_more(
        "[http]\nlisten = \"127.0.0.1:0\"\ntokens = { one = \"${ONE_TOKEN}\" }\n\
         token_files = { two = \"two.token\" }",
    );
    house.write(
        "two.token",
        "a token that lies in a file".replace(' ', "-").as_str(),
    );
    let mut command = house.command(["serve", "--http"]);
    command.env("ONE_TOKEN", TOKEN);
    let site = Site::start(command).await;
    for token in [TOKEN, "a-token-that-lies-in-a-file"] {
        let web = site.web().with("authorization", &format!("bearer {token}"));
        assert_eq!(web.post(PING).await.status, 200);
    }
    assert_eq!(site.web().post(PING).await.status, 401);
    site.stop().await;
    house.stops_clean().await;
}

#[tokio::test]
async fn tls_with_a_certificate_of_ones_own() {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let house = house_with_daemon([fake("any").tool("echo", Step::Echo)]);
    house.write("cert.pem", &made.cert.pem());
    house.write("key.pem", &made.signing_key.serialize_pem());
    house.configure_more("[http]\ntls_cert = \"cert.pem\"\ntls_key = \"./key.pem\"");
    house.indexed().await;
    let site = house.site().await;
    assert!(site.url().starts_with("https://"), "{}", site.url());
    let client = site.web().trusting(made.cert.der().clone());
    let session = client.initialize("journeys", LEGACY_VERSION).await;
    session.execute("any/echo", json!({})).await.good();
    let other = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let distrusting = site.web().trusting(other.cert.der().clone());
    assert!(
        distrusting
            .try_ask("GET", "/healthz", Bytes::new())
            .await
            .is_err()
    );
    assert!(
        site.web()
            .try_ask("GET", "/healthz", Bytes::new())
            .await
            .is_err()
    );
    site.stop().await;
    house.write("key.pem", "no key");
    let refused = house.cli(["serve", "--http", "127.0.0.1:0"]).await;
    refused.ended(2);
    assert!(
        refused.stderr.contains("http.tls_key"),
        "{}",
        refused.stderr
    );
    house.stops_clean().await;
}

/// A client chooses its own name, but it cannot forge a token.
#[tokio::test]
async fn a_kept_result_belongs_to_the_token_it_was_made_under() {
    let long = "a line of a long answer\n".repeat(2_000);
    let house = house([fake("any").tool("long", Step::text(&long))]);
    house.configure_more(&format!(
        "[http]\ntokens = {{ one = \"{TOKEN}\", two = \"{TOKEN}2\" }}"
    ));
    house.indexed().await;
    let site = house.site().await;
    let web = |token: &str| site.web().with("authorization", &format!("bearer {token}"));
    let other = format!("{TOKEN}2");
    let one = web(TOKEN).initialize("same", LEGACY_VERSION).await;
    let two = web(&other).initialize("same", LEGACY_VERSION).await;
    let answer = one.execute("any/long", json!({})).await.good();
    let read = json!({ "handle": handle(&answer), "offset": 0, "limit": 1 });
    let mine = one.execute("proxy/read_result", read.clone()).await.good();
    assert!(mine.contains("a line of a long answer"), "{mine}");
    let theirs = two.execute("proxy/read_result", read).await.bad();
    assert!(theirs.starts_with("error handle_expired"), "{theirs}");
    site.stop().await;
    house.stops_clean().await;
}

/// A workspace belongs to its token, across sessions and restarts, under any client name.
#[tokio::test]
async fn scripts_of_two_tokens_share_no_files() {
    let house = house([fake("any").tool("echo", Step::Echo)]);
    house.configure_more(&format!(
        "[http]\ntokens = {{ one = \"{TOKEN}\", two = \"{TOKEN}2\" }}"
    ));
    house.indexed().await;
    let site = house.site().await;
    let other = format!("{TOKEN}2");
    let open = async |site: &Site, token: &str, name: &str| {
        let web = site.web().with("authorization", &format!("bearer {token}"));
        web.initialize(name, LEGACY_VERSION).await
    };
    let one = open(&site, TOKEN, "same").await;
    let two = open(&site, &other, "same").await;
    let script = |text: &str| json!({ "script": text });
    let write = script("await workspace.write('plan.md', 'of one')");
    one.execute("proxy/run_script", write).await.good();
    for text in [
        "await workspace.read('plan.md')",
        "await workspace.read('../plan.md')",
    ] {
        two.execute("proxy/run_script", script(text)).await.bad();
    }
    let list = || script("await workspace.list()");
    assert_eq!(two.execute("proxy/run_script", list()).await.good(), "[]");
    let overwrite = script("await workspace.write('plan.md', 'of two')");
    two.execute("proxy/run_script", overwrite).await.good();
    site.stop().await;
    let site = house.site().await;
    let again = open(&site, TOKEN, "another name").await;
    let read = || script("await workspace.read('plan.md')");
    assert_eq!(
        again.execute("proxy/run_script", read()).await.good(),
        "of one"
    );
    // A local client with the name of a token is another caller.
    let client = house.client().await;
    client.execute("proxy/run_script", read()).await.bad();
    site.stop().await;
    house.stops_clean().await;
}
