//! `[http]` and `[clients]`: their settings and mistakes.

use super::{load_text, mistakes::check};

#[test]
fn what_is_left_out_listens_nowhere_and_has_limits() {
    let http = load_text("", &[]).unwrap().http;
    assert!(http.listen.is_none() && http.tls.is_none() && !http.metrics);
    assert_eq!(http.limits.body_bytes_max, 4 << 20);
    assert_eq!(http.limits.session_idle.as_secs(), 1_800);
}

#[test]
fn an_address_that_others_reach_needs_a_token() {
    check(
        "[http]\nlisten = \"0.0.0.0:7331\"",
        " http.listen: other machines can reach 0.0.0.0:7331, and no token is configured
    hint: add `[http.tokens]` with a line such as `laptop = \"${LAPTOP_TOKEN}\"` (`openssl rand -hex 32` makes one), or listen on `127.0.0.1`",
    );
    let text = "[http]\nlisten = \"0.0.0.0:7331\"\n[http.tokens]\nci = \"${CI_TOKEN}\"";
    let listen = load_text(text, &[]).unwrap().http.listen.unwrap();
    assert_eq!(listen.to_string(), "0.0.0.0:7331");
    let variable = [("PROXY_HTTP__LISTEN", "7400")];
    let listen = load_text("", &variable).unwrap().http.listen.unwrap();
    assert_eq!(listen.to_string(), "127.0.0.1:7400");
}

#[test]
fn mistakes_are_told_with_the_next_step_and_without_the_secret() {
    check(
        r#"[http]
listen = "example.com:80"
allowed_hosts = ["https://a"]
allowed_origins = ["a"]
tokens = "sesame"
max_body_kib = 0"#,
        r"2:10: http.listen: not an address to listen on: `example.com:80`
    hint: write `127.0.0.1:7331`, `localhost:7331`, a port alone, or `0.0.0.0:7331` for every address of this machine
3:18: http.allowed_hosts[0]: not a host name: `https://a`
    hint: write the host without scheme and path: `tools.example.com`
4:20: http.allowed_origins[0]: not an origin: `a`
    hint: write scheme, host and port, without a path: `https://chat.example.com`
5:10: http.tokens: expected a table of tokens, found text
6:16: http.max_body_kib: expected 1 to 1048576 KiB, found 0",
    );
    check(
        "[http.tokens]\n\"my laptop\" = \"${T}\"",
        "2:1: http.tokens.\"my laptop\": not a token name
    hint: use letters, digits, `-`, `_` and `.`, such as `laptop`",
    );
    check(
        "[http]\ntls_cert = \"cert.pem\"",
        " http.tls_cert: requires `tls_key`
    hint: add `tls_key`, or remove both",
    );
}

#[test]
fn traces_go_nowhere_but_where_the_file_says() {
    let of = |text: &str| load_text(text, &[]).unwrap().gateway.traces;
    assert_eq!(of(""), None);
    let traces = of("[traces]\nendpoint = \"http://127.0.0.1:4318\"").unwrap();
    assert_eq!(traces.endpoint.plain().unwrap(), "http://127.0.0.1:4318");
    check(
        "[traces.headers]\nA = \"b\"",
        " traces.headers: requires `endpoint`
    hint: set the collector: `endpoint = \"http://127.0.0.1:4318\"`",
    );
    let variable = [("PROXY_TRACES__ENDPOINT", "http://127.0.0.1:4318")];
    let refused = load_text("", &variable).unwrap_err();
    assert!(
        refused.to_string().contains("no variable sets this key"),
        "{refused}"
    );
}

#[test]
fn a_client_is_a_table_of_its_own() {
    check(
        "[clients]\nclaude-code = 5",
        "2:15: clients.claude-code: expected a table, found the number 5
    hint: write `[clients.claude-code]` and below it `max_tokens`, `allow`, `deny`, `resources`, `catalog`",
    );
    check(
        "[clients.a]\nallow = []\nmax_token = 500",
        "2:9: clients.a.allow: an empty list
    hint: remove the key to allow all, or write `deny = [\"*\"]` to allow none
3:1: clients.a.max_token: unknown key
    hint: did you mean `max_tokens`?",
    );
    let text = "[clients.\"Some.App 2\"]\nmax_tokens = 500\ndeny = [\"finance\"]";
    let client = load_text(text, &[])
        .unwrap()
        .gateway
        .clients
        .of(Some("some.app 2"));
    assert_eq!(client.max_tokens(None, 4_000), 500);
    let finance = "bank".parse().unwrap();
    assert_eq!(
        client.refuses(&finance, "finance").map(|(rule, _)| rule),
        Some("deny \"finance\"".to_owned())
    );
}

#[test]
fn a_grant_says_what_it_takes() {
    let oauth = |lines: &str| {
        format!("[servers.a]\nurl = \"https://x.example\"\n[servers.a.oauth]\n{lines}")
    };
    check(
        &oauth("grant = \"client_credentials\""),
        " servers.a: `oauth.grant = \"client_credentials\"` requires further keys
    hint: write `oauth.client_id` and `oauth.client_secret = \"${secret:NAME}\"`",
    );
    check(
        &oauth("grant = \"enterprise_managed\"\nclient_id = \"a\"\nassertion = \"${file:/t}\""),
        " servers.a: `oauth.grant = \"enterprise_managed\"` requires further keys
    hint: write `oauth.idp_issuer` and `oauth.idp_client_id`",
    );
    check(
        &oauth("assertion = \"${file:/t}\""),
        " servers.a: `oauth.assertion` or an identity provider without a grant that uses it
    hint: write `oauth.grant = \"jwt_bearer\"` for a machine, `\"enterprise_managed\"` for an employee, or remove them",
    );
    check(
        &oauth("client_id = \"a\"\nclient_secret = \"b\"\nprivate_key = \"c\""),
        " servers.a: both `oauth.private_key` and `oauth.client_secret`
    hint: a client authenticates in one way: remove one of them",
    );
    let whole = "grant = \"client_credentials\"\nclient_id = \"a\"\nprivate_key = \"${file:/k}\"";
    assert!(load_text(&oauth(whole), &[]).is_ok());
}

#[test]
fn a_keyring_needs_a_program_that_was_built_with_it() {
    let keyring = "[secrets]\nstore = \"keyring\"";
    if secrets::HAS_KEYRING {
        let loaded = load_text(keyring, &[]).unwrap();
        assert_eq!(loaded.gateway.secrets, secrets::Keeping::Keyring);
        return;
    }
    check(
        keyring,
        " secrets.store: this program was built without keyring support
    hint: build it with `--features keyring`, or write `\"file\"`",
    );
}
