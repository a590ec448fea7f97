//! The values that servers get from each caller over HTTP: its token's name, headers, and secrets.

use std::io::Write as _;

use journeys::{
    fake::{LEGACY_VERSION, Step},
    house::{House, fake},
    site::Site,
    web::Web,
};
use serde_json::json;

use crate::house_with_daemon;

const TOKENS: [(&str, &str); 2] = [
    ("ann", "0123456789abcdef-ann"),
    ("bob", "0123456789abcdef-bob"),
];

/// A house with a command that prints what it got of its caller.
fn with_command(more: &str) -> House {
    let house = house_with_daemon([fake("plain").tool("echo", Step::Echo)]);
    let tokens = TOKENS.map(|(name, token)| format!("{name} = \"{token}\"\n"));
    house.configure_more(&format!(
        "[http.tokens]\n{}[commands.who]\ncommand = [\"printenv\", \"WHO\"]\n\
         [servers.commands]\nenv = {{ WHO = \"${{caller:subject}}/${{caller:X-Team:-none}}\" }}\n{more}",
        tokens.concat()
    ));
    house
}

fn web_of(site: &Site, name: &str) -> Web {
    let (_, token) = TOKENS.iter().find(|(it, _)| *it == name).unwrap();
    site.web().with("authorization", &format!("Bearer {token}"))
}

async fn who(web: &Web) -> String {
    web.execute("commands/who", json!({})).await.good()
}

#[tokio::test]
async fn a_server_gets_the_name_and_the_headers_of_each_caller() {
    let house = with_command("");
    house.indexed().await;
    let site = house.site().await;
    let ann = web_of(&site, "ann").initialize("a", LEGACY_VERSION).await;
    let bob = web_of(&site, "bob").modern("b");
    let with_team = bob.clone().with("x-team", "red");
    for _ in 0..3 {
        let (ann, bob, with_team) = tokio::join!(who(&ann), who(&bob), who(&with_team));
        assert_eq!(
            [ann.trim(), bob.trim(), with_team.trim()],
            ["ann/none", "bob/none", "bob/red"]
        );
    }
    // The header of a session's request counts, not that of its first one.
    assert_eq!(
        who(&ann.clone().with("x-team", "blue")).await.trim(),
        "ann/blue"
    );
    // Scripts and several calls at once pass it on.
    let calls = json!({"calls": [{"tool_name": "commands/who"}, {"tool_name": "plain/echo", "tool_input": {}}]});
    let many = with_team.execute("proxy/call_many", calls).await.good();
    assert!(many.contains("bob/red"), "{many}");
    let script = json!({"script": "return await tools.commands.who({})"});
    let of_script = with_team.execute("proxy/run_script", script).await.good();
    assert!(of_script.contains("bob/red"), "{of_script}");
    // A client on this machine has no token.
    let here = house.client().await;
    let refused = here.execute("commands/who", json!({})).await.bad();
    assert!(
        refused.contains("the caller sent no value for `${caller:subject}`"),
        "{refused}"
    );
    site.stop().await;
    house.stops_clean().await;
}

#[tokio::test]
async fn a_caller_has_a_secret_of_its_own() {
    let house = with_command("");
    let text = std::fs::read_to_string(house.config()).unwrap();
    let text = text.replace(
        "${caller:subject}/${caller:X-Team:-none}",
        "${caller:secret:key}",
    );
    std::fs::write(house.config(), text).unwrap();
    let set = async |args: &[&str], value: &str| {
        let mut child = house
            .command([&["secret", "set", "key"], args].concat())
            .into_std();
        child.stdin(std::process::Stdio::piped());
        let mut child = child.spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(value.as_bytes())
            .unwrap();
        assert!(child.wait().unwrap().success());
    };
    set(&["--for", "ann"], "of-ann-5f1e9c").await;
    let site = house.site().await;
    let (ann, bob) = (
        web_of(&site, "ann").modern("a"),
        web_of(&site, "bob").modern("b"),
    );
    assert_eq!(who(&ann).await.trim(), "of-ann-5f1e9c");
    let refused = bob.execute("commands/who", json!({})).await.bad();
    assert!(
        refused.contains("proxy secret set key --for 'token bob'"),
        "{refused}"
    );
    assert!(!refused.contains("of-ann"), "{refused}");
    set(&["--for", "token bob"], "of-bob-a7c1d2").await;
    assert_eq!(who(&bob).await.trim(), "of-bob-a7c1d2");
    let listed = house.cli(["secret", "list"]).await;
    assert_eq!(listed.stdout, "key@token ann\nkey@token bob\n");
    let unknown = house
        .cli(["secret", "set", "key", "--for", "token eve"])
        .await;
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    let nobody = house.cli(["secret", "set", "key", "--for", "eve"]).await;
    assert!(
        nobody
            .stderr
            .contains("the tokens of `[http.tokens]` are ann, bob"),
        "{nobody:?}"
    );
    site.stop().await;
    house.stops_clean().await;
}
