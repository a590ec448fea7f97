//! Logins at a real authorization server, for a server of the official SDK.

use std::{fs, path::Path, process::Stdio};

use journeys::{
    client::{Client, DEADLINE},
    guarded::{Guarded, MACHINE, RealAuth},
    house::{House, Output},
    page::Tab,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    time::{interval, timeout},
};

use crate::{calling, programs};

/// A house, a server that requires a login, and its authorization server.
pub(super) struct LoginSetup {
    pub(super) house: House,
    pub(super) auth: RealAuth,
    pub(super) guarded: Guarded,
}

pub(super) async fn scene(token_seconds: u32, clock_ahead_seconds: i32) -> LoginSetup {
    let auth = crate::real_auth();
    let guarded = auth.start(token_seconds, clock_ahead_seconds).await;
    let house = House::without_config(&programs()).with_daemon();
    house.configure(&guarded.table(""));
    LoginSetup {
        house,
        auth,
        guarded,
    }
}

impl LoginSetup {
    /// Runs a command with a browser whose user agrees.
    pub(super) async fn run(&self, args: &[&str]) -> Output {
        let mut command = self.house.command(args);
        command.env("BROWSER", self.auth.browser(&self.house));
        let output = command.kill_on_drop(true).output().await.unwrap();
        Output {
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            code: output.status.code(),
        }
    }

    pub(super) async fn log_in(&self) {
        let login = self.run(&["login", "guarded"]).await;
        assert!(login.stderr.contains("guarded: logged in at"), "{login:?}");
        login.ended(0);
    }

    pub(super) async fn end(self) {
        self.guarded.stop().await;
        self.house.stops_clean().await;
    }
}

async fn who(client: &Client) -> String {
    client.execute("guarded/whoami", json!({})).await.good()
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn a_login_a_logout_and_another_login() {
    let scene = scene(600, 0).await;
    let before = scene.run(&["reindex"]).await;
    assert!(before.stdout.contains("proxy login guarded"), "{before:?}");
    let stranger = scene.run(&["call", "guarded/whoami"]).await;
    assert!(
        stranger
            .stderr
            .starts_with("error login_required: guarded: "),
        "{stranger:?}"
    );
    scene.log_in().await;
    let client = scene.house.client().await;
    assert_eq!(who(&client).await, "client known, scopes read");

    let servers = scene.run(&["servers"]).await;
    assert!(servers.stdout.contains("; scopes: read"), "{servers:?}");
    assert!(
        servers.stdout.contains("renewed automatically"),
        "{servers:?}"
    );
    let status = scene.house.status().await;
    assert_eq!(status["servers"][0]["login"]["scopes"], json!(["read"]));

    scene.run(&["login", "--end", "guarded"]).await.ended(0);
    let refused = client.execute("guarded/whoami", json!({})).await.bad();
    let expected = "error login_required: guarded: ask the user to run \"proxy login guarded\"";
    assert!(refused.starts_with(expected), "{refused}");
    // The server would pause for a minute; the login ends the pause.
    scene.log_in().await;
    assert_eq!(who(&client).await, "client known, scopes read");
    // The second login used the registration of the first.
    assert_eq!(scene.guarded.count("/reg").await, 1);
    scene.end().await;
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn a_login_that_begins_on_the_page() {
    let scene = scene(600, 0).await;
    scene.run(&["reindex"]).await;
    let tab = Tab::open(&scene.house).await;
    let mut live = tab.live().await;
    let needed = |state: &Value| state["attention"]["login guarded"].is_object();
    live.until(needed).await;
    let path = "/api/v1/servers/guarded/login";
    let begun = tab.post(path, json!({}), 200).await;
    let address = begun["address"].as_str().unwrap();
    live.until(|state| state["servers"]["guarded"]["login_address"] == address)
        .await;
    // The person reads the page again, and goes on at the same address.
    assert_eq!(tab.post(path, json!({}), 200).await["address"], address);
    scene.auth.browse(address).await;
    live.until(|state| !needed(state) && state["servers"]["guarded"]["tools"] != 0)
        .await;
    assert!(live.state["servers"]["guarded"]["login_address"].is_null());
    scene.end().await;
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn ten_calls_at_a_time_outlive_their_tokens() {
    let scene = scene(2, 0).await;
    // Tokens expire after 2 s by the proxy's clock. The server accepts them for longer, so that a
    // request on a busy machine is not refused.
    scene.guarded.control("leeway/600").await;
    scene.log_in().await;
    let client = scene.house.client().await;
    let asked = scene.guarded.count("/token").await;
    // Each refresh token is valid once: reusing one would end the login.
    let mut rounds = interval(std::time::Duration::from_millis(100));
    while scene.guarded.count("/token").await < asked + 3 {
        rounds.tick().await;
        // Another process refreshes the same login.
        let alone = ["call", "--standalone", "guarded/whoami"];
        let ((), other) = tokio::join!(call_ten_at_a_time(&client), scene.run(&alone));
        other.ended(0);
    }
    // Rotated keys invalidate every token at once.
    scene.guarded.control("ttl/600").await;
    scene.guarded.control("rotate").await;
    let asked = scene.guarded.count("/token").await;
    call_ten_at_a_time(&client).await;
    call_ten_at_a_time(&client).await;
    assert_eq!(scene.guarded.count("/token").await, asked + 1);
    scene.end().await;
}

async fn call_ten_at_a_time(client: &Client) {
    let mut calls = Vec::new();
    for _ in 0..10 {
        let call = calling("guarded/whoami", &json!({}));
        calls.push(client.begin("tools/call", call).await.1);
    }
    for call in calls {
        assert_eq!(call.await.good(), "client known, scopes read");
    }
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn a_token_that_was_revoked_asks_for_a_new_login_and_the_call_goes_on_after_it() {
    let scene = scene(600, 0).await;
    scene.log_in().await;
    let client = scene.house.client().await;
    who(&client).await;
    scene.guarded.control("revoke").await;
    let refused = client.execute("guarded/whoami", json!({})).await.bad();
    let expected = "error login_required: guarded: ask the user to run \"proxy login guarded\" \
                    again, the login has ended";
    assert!(refused.starts_with(expected), "{refused}");
    let servers = scene.run(&["servers"]).await;
    assert!(
        servers.stdout.contains("the login has ended"),
        "{servers:?}"
    );
    // A login that is known to be invalid is not tried again.
    let asked = scene.guarded.count("/token").await;
    for _ in 0..5 {
        client.execute("guarded/whoami", json!({})).await.bad();
    }
    assert_eq!(scene.guarded.count("/token").await, asked);
    log_in_after_the_second(&scene).await;
    assert_eq!(who(&client).await, "client known, scopes read");
    scene.end().await;
}

/// Logs in again. The authorization server revokes everything that it issued within the second of the
/// revocation, so the first logins may fail.
async fn log_in_after_the_second(scene: &LoginSetup) {
    let mut looks = interval(std::time::Duration::from_millis(200));
    let logged_in = async {
        loop {
            looks.tick().await;
            if scene.run(&["login", "guarded"]).await.code == Some(0)
                && scene.run(&["reindex"]).await.code == Some(0)
            {
                return;
            }
        }
    };
    let waited = timeout(DEADLINE, logged_in).await;
    waited.expect("a login after the revocation succeeds");
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn a_tool_that_needs_more_says_so_and_a_login_gives_it() {
    let scene = scene(600, 0).await;
    scene.log_in().await;
    let client = scene.house.client().await;
    let refused = client.execute("guarded/rule", json!({})).await.bad();
    assert!(
        refused.starts_with("error login_required: guarded: "),
        "{refused}"
    );
    assert!(
        refused.contains("lacks the scopes it asks for: admin"),
        "{refused}"
    );
    // The existing login is still used within its scopes.
    assert_eq!(who(&client).await, "client known, scopes read");
    scene.log_in().await;
    let ruled = client.execute("guarded/rule", json!({})).await.good();
    assert_eq!(ruled, "ruled");
    assert_eq!(who(&client).await, "client known, scopes read+admin");
    scene.end().await;
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn without_a_browser_the_last_address_is_pasted() {
    let scene = scene(600, 0).await;
    let mut command = scene.house.command(["login", "guarded", "--no-browser"]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut login = command.kill_on_drop(true).spawn().unwrap();
    let mut printed = BufReader::new(login.stdout.take().unwrap()).lines();
    let url = printed.next_line().await.unwrap().unwrap();
    let came_to = scene.auth.browse_elsewhere(&url).await;
    let mut stdin = login.stdin.take().unwrap();
    // The redirect of another login does not end this one, nor does an invalid line.
    let foreign = "http://127.0.0.1/callback?code=x&state=y\nwhat?\n";
    stdin.write_all(foreign.as_bytes()).await.unwrap();
    stdin
        .write_all(format!("{came_to}\n").as_bytes())
        .await
        .unwrap();
    let ended = login.wait_with_output().await.unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(ended.status.success(), "{said}");
    assert!(said.contains("its `state` does not match"), "{said}");
    assert!(said.contains("paste the whole address"), "{said}");
    let client = scene.house.client().await;
    assert_eq!(who(&client).await, "client known, scopes read");
    scene.end().await;
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn a_client_that_shows_addresses_is_asked_and_its_call_goes_on() {
    const ELICIT: &str = "elicitation/create";
    let scene = scene(600, 0).await;
    scene.log_in().await;
    scene.run(&["login", "--end", "guarded"]).await.ended(0);
    let client = scene.house.serve();
    let can = json!({"elicitation": {"url": {}}});
    client.initialize_with("2025-11-25", can).await;
    client.holds_back(ELICIT);
    let (_, call) = client
        .begin("tools/call", calling("guarded/whoami", &json!({})))
        .await;
    let question = client.next(ELICIT).await;
    assert_eq!(question["params"]["mode"], "url");
    let url = question["params"]["url"].as_str().unwrap();
    client.answer(&question, json!({"action": "accept"})).await;
    let page = scene.auth.browse(url).await;
    assert!(page.contains("You are logged in"), "{page}");
    assert_eq!(call.await.good(), "client known, scopes read");
    // If the user declines, the error tells the model the command to name.
    scene.run(&["login", "--end", "guarded"]).await.ended(0);
    client.answers(ELICIT, json!({"action": "decline"}));
    let refused = client.execute("guarded/whoami", json!({})).await.bad();
    assert!(
        refused.starts_with("error login_required: guarded: "),
        "{refused}"
    );
    scene.end().await;
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn a_code_is_entered_on_another_device() {
    let scene = scene(600, 0).await;
    let mut command = scene.house.command(["login", "guarded", "--device"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut login = command.kill_on_drop(true).spawn().unwrap();
    let mut printed = BufReader::new(login.stdout.take().unwrap()).lines();
    let url = printed.next_line().await.unwrap().unwrap();
    let page = scene.auth.browse(&url).await;
    assert!(page.ends_with("done"), "{page}");
    let ended = login.wait_with_output().await.unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(ended.status.success(), "{said}");
    assert!(
        said.contains("enter the code ") && said.contains("logged in at"),
        "{said}"
    );
    let client = scene.house.client().await;
    assert_eq!(who(&client).await, "client known, scopes read");
    scene.end().await;
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn two_logins_at_once_do_not_disturb_each_other() {
    let scene = scene(600, 0).await;
    let login = ["login", "guarded"];
    let (one, two) = tokio::join!(scene.run(&login), scene.run(&login));
    one.ended(0);
    two.ended(0);
    let client = scene.house.client().await;
    assert_eq!(who(&client).await, "client known, scopes read");
    scene.end().await;
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn a_clock_that_is_ten_minutes_off_is_no_matter() {
    for ahead in [600, -600] {
        let scene = scene(2, ahead).await;
        scene.log_in().await;
        let client = scene.house.client().await;
        let asked = scene.guarded.count("/token").await;
        let mut rounds = interval(std::time::Duration::from_millis(100));
        while scene.guarded.count("/token").await < asked + 2 {
            rounds.tick().await;
            who(&client).await;
        }
        scene.end().await;
    }
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn a_machine_needs_no_login() {
    let scene = scene(600, 0).await;
    let (id, secret) = MACHINE;
    let mut keep = scene.house.command(["secret", "set", "machine"]);
    let mut keep = keep.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = keep.stdin.take().unwrap();
    stdin.write_all(secret.as_bytes()).await.unwrap();
    drop(stdin);
    assert!(keep.wait().await.unwrap().success());
    let oauth = format!(
        "oauth = {{ grant = \"client_credentials\", client_id = \"{id}\", client_secret = \
         \"${{secret:machine}}\" }}"
    );
    scene.house.configure(&scene.guarded.table(&oauth));
    scene.run(&["reindex"]).await.ended(0);
    let client = scene.house.client().await;
    assert_eq!(who(&client).await, "client known, scopes read");
    // The secret is not copied into the login file.
    let auth = find_auth(&scene.house);
    assert!(!fs::read_to_string(auth).unwrap().contains(secret));
    scene.end().await;
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn a_login_outlives_the_daemon_and_no_token_is_anywhere_else() {
    let scene = scene(600, 0).await;
    scene.log_in().await;
    let mut serve = scene.house.command(["-vv", "serve"]);
    serve.env("PROXY_LOG", "debug");
    let client = scene.house.keep(Client::start(serve));
    client.initialize("2025-11-25").await;
    let first = client.execute("guarded/whoami", json!({})).await;
    scene.run(&["daemon", "restart"]).await.ended(0);
    let second = crate::answered_in_the_end(&client, "guarded/whoami", &json!({})).await;
    assert_eq!(second, "client known, scopes read");

    let auth = find_auth(&scene.house);
    let record: Value = serde_json::from_slice(&fs::read(&auth).unwrap()).unwrap();
    let grant = &record["grant"];
    let mut said = vec![first.raw().to_owned(), client.stderr()];
    for args in [
        &["status"][..],
        &["servers", "--json"],
        &["doctor"],
        &["logs"],
    ] {
        let output = scene.run(args).await;
        said.push(output.stdout + &output.stderr);
    }
    scene.guarded.control("revoke").await;
    said.push(
        client
            .execute("guarded/whoami", json!({}))
            .await
            .raw()
            .to_owned(),
    );
    for token in ["access_token", "refresh_token"] {
        let token = grant[token].as_str().expect("the token was issued");
        assert!(said.iter().all(|text| !text.contains(token)), "{said:#?}");
        assert_eq!(
            files_with(token, &scene.house.path(""), &auth),
            Vec::<String>::new()
        );
    }
    scene.end().await;
}

/// Returns the file of the only login.
fn find_auth(house: &House) -> std::path::PathBuf {
    let mut found = Vec::new();
    walk(&house.path("xdg-state"), &mut |path| {
        let is_login = path.parent().is_some_and(|it| it.ends_with("auth"));
        if is_login && path.extension().is_some_and(|it| it == "json") {
            found.push(path.to_owned());
        }
    });
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// Returns the files below the folder, except one, that contain this text.
fn files_with(text: &str, folder: &Path, but: &Path) -> Vec<String> {
    let mut found = Vec::new();
    walk(folder, &mut |path| {
        let bytes = fs::read(path).unwrap_or_default();
        let is_in = bytes
            .windows(text.len())
            .any(|window| window == text.as_bytes());
        if path != but && is_in {
            found.push(path.display().to_string());
        }
    });
    found
}

fn walk(folder: &Path, see: &mut impl FnMut(&Path)) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            walk(&path, see);
        } else if path.is_file() {
            see(&path);
        }
    }
}
