//! Our own HTTP endpoint, protected by a real authorization server.

use journeys::{
    fake::Step,
    guarded::{Guarded, MACHINE},
    house::{House, fake},
    site::Site,
};
use serde_json::{Value, json};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const METADATA: &str = "/.well-known/oauth-protected-resource";

/// Creates a house with two servers, which accepts tokens whose audience is the address of the
/// guarded server: an audience is only a string.
async fn opened(guarded: &Guarded, scopes: &str) -> (House, Site) {
    let house = crate::house([
        fake("notes").tool("write_note", Step::Echo),
        fake("finance").tool("pay_bill", Step::Echo),
    ]);
    house.configure_more(&format!(
        "[http]\ntokens = {{ laptop = \"0123456789abcdef\" }}\n[http.oauth]\nissuer = \"{}\"\n\
         audience = \"{}\"\n{scopes}\n[clients.read]\ndeny = [\"finance\"]\n",
        guarded.issuer, guarded.url
    ));
    house.indexed().await;
    let site = house.site().await;
    (house, site)
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn tokens_of_the_issuer_let_clients_in_and_its_keys_may_change() {
    let guarded = crate::real_auth().start(600, 0).await;
    let (house, site) = opened(&guarded, "").await;
    let nobody = site.web().post(PING).await;
    assert_eq!(nobody.status, 401);
    let expected = guarded.url.replace("/mcp", &format!("{METADATA}/mcp"));
    let expected = format!("Bearer resource_metadata=\"{expected}\"");
    assert_eq!(nobody.header("www-authenticate"), expected);
    let described = site.web().ask("GET", &format!("{METADATA}/mcp"), "").await;
    let described: Value = serde_json::from_str(&described.text().await).unwrap();
    assert_eq!(described["resource"], json!(guarded.url));
    assert_eq!(described["authorization_servers"], json!([guarded.issuer]));

    let with = |token: &str| site.web().with("authorization", &format!("Bearer {token}"));
    let token = guarded.machine_token("read").await;
    assert_eq!(with(&token).post(PING).await.status, 200);
    // A token of the configuration is still accepted.
    assert_eq!(with("0123456789abcdef").post(PING).await.status, 200);
    let (head, rest) = token.split_once('.').unwrap();
    for bad in [
        token[..token.len() - 2].to_owned(),
        format!("{head}x.{rest}"),
        "nonsense".to_owned(),
    ] {
        let refused = with(&bad).post(PING).await;
        assert_eq!(refused.status, 401);
        let said = refused.header("www-authenticate").to_owned();
        assert!(said.contains("error=\"invalid_token\""), "{said}");
        assert!(
            !refused.text().await.contains(&bad),
            "the token is not repeated"
        );
    }
    site.stop().await;

    // A new process has no keys yet; one that has the old keys fetches the new ones.
    let site = house.site().await;
    let with = |token: &str| site.web().with("authorization", &format!("Bearer {token}"));
    guarded.control("rotate").await;
    let newer = guarded.machine_token("read").await;
    assert_eq!(with(&newer).post(PING).await.status, 200);
    assert_eq!(with(&token).post(PING).await.status, 401);
    guarded.stop().await;
    site.stop().await;
    house.stops_clean().await;
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn the_scopes_of_a_token_say_what_its_client_sees() {
    let guarded = crate::real_auth().start(600, 0).await;
    let (house, site) = opened(&guarded, "scopes = [\"admin\", \"read\"]").await;
    let nobody = site.web().post(PING).await;
    let said = nobody.header("www-authenticate").to_owned();
    assert!(said.ends_with("scope=\"admin read\""), "{said}");
    let seen = async |scope: &str| {
        let token = guarded.machine_token(scope).await;
        let web = site.web().with("authorization", &format!("Bearer {token}"));
        let web = web.initialize("any", "2025-11-25").await;
        web.search("*").await.good()
    };
    let (all, some) = (seen("read admin").await, seen("read").await);
    assert!(
        all.contains("write_note") && all.contains("pay_bill"),
        "{all}"
    );
    assert!(
        some.contains("write_note") && !some.contains("pay_bill"),
        "{some}"
    );
    let token = guarded.machine_token("").await;
    let web = site.web().with("authorization", &format!("Bearer {token}"));
    let refused = web.post(PING).await;
    assert_eq!(refused.status, 403);
    let said = refused.header("www-authenticate").to_owned();
    assert!(said.contains("error=\"insufficient_scope\""), "{said}");
    guarded.stop().await;
    site.stop().await;
    house.stops_clean().await;
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn a_token_that_is_no_jwt_is_asked_about_once_a_minute() {
    let guarded = crate::real_auth().start(600, 0).await;
    guarded.control("format/opaque").await;
    let (id, secret) = MACHINE;
    let asking = format!(
        "scopes = [\"read\"]\nintrospection_client_id = \"{id}\"\n\
         introspection_client_secret = \"{secret}\""
    );
    let (house, site) = opened(&guarded, &asking).await;
    let ping = async |token: &str| {
        let web = site.web().with("authorization", &format!("Bearer {token}"));
        web.post(PING).await.status
    };
    let token = guarded.machine_token("read").await;
    assert!(!token.contains('.'), "the token is opaque: {token}");
    for _ in 0..5 {
        assert_eq!(ping(&token).await, 200);
    }
    assert_eq!(guarded.count("/token/introspection").await, 1);
    assert_eq!(ping("nonsense").await, 401);
    assert_eq!(ping(&guarded.machine_token("admin").await).await, 403);
    guarded.stop().await;
    site.stop().await;
    house.stops_clean().await;
}
