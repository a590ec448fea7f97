//! Credentials of callers over HTTP: each has its own, at real servers with a real authorization server.

use futures::future::join_all;
use journeys::{
    client::DEADLINE,
    fake::LEGACY_VERSION,
    guarded::{Guarded, MACHINE, RealAuth},
    house::House,
    port::ReservedPort,
    site::Site,
    web::Web,
};
use serde_json::json;
use tokio::time::timeout;

use crate::{calling, programs};

/// The audience of tokens for the proxy.
const OURS: &str = "https://tools.example/mcp";

/// The number of concurrent callers. Each has a connection of its own to each of three servers in one
/// process, which must answer all handshakes within the timeout of a start.
const AT_ONCE: usize = 5;

struct CallerSetup {
    house: House,
    auth: RealAuth,
    guarded: Guarded,
    port: ReservedPort,
}

impl CallerSetup {
    /// `servers` makes the tables of the servers.
    async fn new(token_seconds: u32, servers: impl Fn(&Guarded) -> String) -> Self {
        let auth = crate::real_auth();
        let guarded = auth.start(token_seconds, 0).await;
        let house = House::without_config(&programs()).with_daemon();
        let port = ReservedPort::new();
        house.configure(&format!(
            "{}[http]\npublic_url = \"http://{}\"\n\
             max_sessions = 512\n[http.oauth]\nissuer = \"{}\"\n\
             audience = \"{OURS}\"\n",
            servers(&guarded),
            port.address(),
            guarded.issuer
        ));
        Self {
            house,
            auth,
            guarded,
            port,
        }
    }

    async fn site(&self) -> Site {
        self.house.site_at(self.port.address()).await
    }

    async fn web_of(&self, site: &Site, person: &str) -> Web {
        let token = self.guarded.token_of(person, OURS, 3_600).await;
        with_token(site, &token)
    }

    async fn end(self, site: Site) {
        site.stop().await;
        self.guarded.stop().await;
        self.house.stops_clean().await;
    }
}

fn with_token(site: &Site, token: &str) -> Web {
    site.web().with("authorization", &format!("Bearer {token}"))
}

fn own_login(guarded: &Guarded) -> String {
    guarded.table("login = \"caller\"")
}

/// Returns the address in a `login_required` error.
fn address_in(error: &str) -> String {
    assert!(
        error.starts_with("error login_required: guarded: "),
        "{error}"
    );
    let at = error
        .find("http://")
        .unwrap_or_else(|| panic!("no address: {error}"));
    error[at..].split_whitespace().next().unwrap().to_owned()
}

async fn who(web: &Web) -> String {
    web.execute("guarded/me", json!({})).await.good()
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn each_caller_logs_in_for_itself() {
    let setup = CallerSetup::new(600, own_login).await;
    let site = setup.site().await;
    let people = [
        setup.web_of(&site, "ann").await,
        setup.web_of(&site, "bob").await,
    ];
    let [ann, bob] = [
        people[0].initialize("a", LEGACY_VERSION).await,
        people[1].clone().modern("b"),
    ];
    let address = address_in(&ann.execute("guarded/me", json!({})).await.bad());
    assert!(address.starts_with(&format!("http://{}/login/", setup.port.address())));
    // The same address as long as it is valid, and another one for another caller.
    assert_eq!(
        address_in(&ann.execute("guarded/me", json!({})).await.bad()),
        address
    );
    let of_bob = address_in(&bob.execute("guarded/me", json!({})).await.bad());
    assert_ne!(of_bob, address);
    let page = setup.auth.browse_as("ann", &address).await;
    assert!(page.contains("You are logged in at guarded."), "{page}");
    assert_eq!(who(&ann).await, "ann");
    let refused = bob.execute("guarded/me", json!({})).await.bad();
    assert_eq!(address_in(&refused), of_bob);
    setup.auth.browse_as("bob", &of_bob).await;
    let (one, two) = tokio::join!(who(&ann), who(&bob));
    assert_eq!([one.as_str(), two.as_str()], ["ann", "bob"]);
    // Callers share one registration.
    assert_eq!(setup.guarded.count("/reg").await, 1);
    // A client on this machine has the login of `proxy login`, and nobody else's.
    let here = setup.house.client().await;
    let refused = here.execute("guarded/me", json!({})).await.bad();
    assert!(refused.contains("\"proxy login guarded\""), "{refused}");

    // A killed daemon loses no login.
    journeys::processes::kill(setup.house.daemon().await);
    site.kill().await;
    let site = setup.site().await;
    let again = setup.web_of(&site, "ann").await;
    assert_eq!(
        who(&again.initialize("a", LEGACY_VERSION).await).await,
        "ann"
    );

    let gone = setup
        .house
        .cli(["login", "--end", "guarded", "--for", "ann"])
        .await;
    assert!(gone.stderr.contains("guarded: logged out"), "{gone:?}");
    let bob = setup.web_of(&site, "bob").await.modern("b");
    assert_eq!(who(&bob).await, "bob");
    let ann = setup.web_of(&site, "ann").await.modern("a");
    let refused = ann.execute("guarded/me", json!({})).await.bad();
    assert_ne!(address_in(&refused), address);
    // Revoked at its server, the login is asked for again.
    setup.guarded.control("revoke").await;
    address_in(&bob.execute("guarded/me", json!({})).await.bad());
    setup.end(site).await;
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn a_client_that_shows_addresses_continues_its_call_after_the_login() {
    let setup = CallerSetup::new(600, own_login).await;
    let site = setup.site().await;
    let can = json!({"elicitation": {"url": {}}});
    let ann = setup.web_of(&site, "ann").await;
    let ann = ann.initialize_with("a", LEGACY_VERSION, can).await;
    let (id, mut answer) = ann
        .send("tools/call", calling("guarded/me", &json!({})))
        .await;
    let question = loop {
        let message = answer.message().await;
        if message["method"] == "elicitation/create" {
            break message;
        }
    };
    let address = question["params"]["url"].as_str().unwrap().to_owned();
    let page = setup.auth.browse_as("ann", &address).await;
    assert!(page.contains("You are logged in"), "{page}");
    let accept = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}});
    ann.post(accept.to_string()).await;
    let reply = loop {
        let message = answer.message().await;
        if message["id"] == json!(id) {
            break message;
        }
    };
    assert_eq!(reply["result"]["content"][0]["text"], "ann", "{reply}");
    setup.end(site).await;
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn an_address_of_a_login_serves_its_own_page_alone() {
    let setup = CallerSetup::new(600, own_login).await;
    let site = setup.site().await;
    let ann = setup.web_of(&site, "ann").await.modern("a");
    let address = address_in(&ann.execute("guarded/me", json!({})).await.bad());
    let path = &address[address.find("/login/").unwrap()..];
    let get = async |path: &str| site.web().ask("GET", path, "").await;
    let page = get(path).await;
    assert_eq!(page.status, 200);
    assert!(
        page.header("content-security-policy")
            .contains("frame-ancestors 'none'")
    );
    assert!(page.text().await.contains("oauth ann"));
    assert_eq!(
        get("/login/0123456789abcdef0123456789abcdef").await.status,
        404
    );
    assert_eq!(
        get("/login/callback?state=nonsense&code=x").await.status,
        400
    );
    // Another site, or no browser, cannot begin the login.
    for (name, value) in [("accept", "*/*"), ("origin", "http://127.0.0.1:9")] {
        let foreign = site.web().with(name, value);
        assert_eq!(foreign.ask("POST", path, "").await.status, 403, "{name}");
    }
    let own = format!("http://{}", setup.port.address());
    let own = site.web().with("origin", &own);
    let cross = own.clone().with("sec-fetch-site", "cross-site");
    assert_eq!(cross.ask("POST", path, "").await.status, 403);
    let begun = own.ask("POST", path, "").await;
    assert_eq!(begun.status, 303);
    let location = begun.header("location").to_owned();
    assert!(location.starts_with(&setup.guarded.issuer), "{location}");
    // A person who refuses is told so, and the caller is not logged in.
    let (_, state) = location.split_once("state=").unwrap();
    let state = state.split('&').next().unwrap();
    let issuer = setup.guarded.issuer.replace(':', "%3A").replace('/', "%2F");
    let back = format!("/login/callback?error=access_denied&state={state}&iss={issuer}");
    let refused = get(&back).await;
    assert_eq!(refused.status, 400);
    let text = refused.text().await;
    assert!(text.contains("access_denied"), "{text}");
    assert_eq!(
        address_in(&ann.execute("guarded/me", json!({})).await.bad()),
        address
    );
    setup.end(site).await;
}

fn exchanged(guarded: &Guarded) -> String {
    let (id, secret) = MACHINE;
    let names = ["one", "two", "three"].into_iter();
    let tables = names.zip(guarded.resources()).map(|(name, url)| {
        format!(
            "[servers.{name}]\nurl = \"{url}\"\nlogin = \"caller\"\n[servers.{name}.oauth]\n\
             grant = \"token_exchange\"\nclient_id = \"{id}\"\nclient_secret = \"{secret}\"\n"
        )
    });
    tables.collect()
}

/// Calls all three servers as this person; returns who each of them saw.
async fn who_everywhere(web: &Web) -> Vec<String> {
    let calls = ["one", "two", "three"].map(|server| {
        let tool = format!("{server}/me");
        async move { web.execute(&tool, json!({})).await.text() }
    });
    join_all(calls).await
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn two_hundred_callers_are_themselves_at_three_servers() {
    let setup = CallerSetup::new(2, exchanged).await;
    // Tokens expire after 2 s by the proxy's clock. The server accepts them for longer, so that a
    // request on a busy machine is not refused.
    setup.guarded.control("leeway/600").await;
    let site = setup.site().await;
    let names: Vec<String> = (0..200).map(|at| format!("person-{at}")).collect();
    let first = setup.web_of(&site, "first").await.modern("first");
    // The servers are surveyed for the first caller.
    let surveyed = async { while who_everywhere(&first).await != ["first"; 3] {} };
    timeout(DEADLINE, surveyed).await.unwrap();
    let mut callers = Vec::new();
    for name in &names {
        callers.push(setup.web_of(&site, name).await.modern(name));
    }
    let round = async || {
        for some in names
            .iter()
            .zip(&callers)
            .collect::<Vec<_>>()
            .chunks(AT_ONCE)
        {
            let calls = some.iter().map(async |(name, web)| {
                assert_eq!(who_everywhere(web).await, [name.as_str(); 3]);
            });
            join_all(calls).await;
        }
    };
    round().await;
    // Exchanged tokens expire, and others are exchanged.
    let before = setup.guarded.count("/token").await;
    assert!(before >= 600, "{before}");
    let exchanged_again = async {
        while setup.guarded.count("/token").await == before {
            assert_eq!(who_everywhere(&callers[0]).await, [names[0].as_str(); 3]);
        }
    };
    timeout(DEADLINE, exchanged_again).await.unwrap();
    round().await;
    journeys::processes::kill(setup.house.daemon().await);
    site.kill().await;
    let site = setup.site().await;
    round().await;
    // A token that ended at its issuer is worth nothing to the proxy either, once it must be exchanged.
    setup.guarded.control("revoke").await;
    let refused = async {
        let is_refused = |text: &String| text.starts_with("error ");
        while !who_everywhere(&callers[0]).await.iter().all(is_refused) {}
    };
    timeout(DEADLINE, refused).await.unwrap();
    setup.end(site).await;
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn a_forged_subject_and_a_token_for_others_are_refused_and_told_apart_in_the_log() {
    let setup = CallerSetup::new(600, exchanged).await;
    let site = setup.site().await;
    let token = setup.guarded.token_of("ann", OURS, 600).await;
    let mut parts: Vec<String> = token.split('.').map(str::to_owned).collect();
    let of_bob = setup.guarded.token_of("bob", OURS, 600).await;
    parts[1] = of_bob.split('.').nth(1).unwrap().to_owned();
    let elsewhere = setup
        .guarded
        .token_of("ann", "https://other.example", 600)
        .await;
    let expired = setup.guarded.token_of("ann", OURS, -600).await;
    for bad in [parts.join("."), elsewhere, expired] {
        let web = with_token(&site, &bad).modern("x");
        let (_, answer) = web.send("tools/call", calling("one/me", &json!({}))).await;
        assert_eq!(answer.status, 401);
        let text = answer.text().await;
        assert!(!text.contains("ann") && !text.contains(&bad), "{text}");
    }
    let ann = with_token(&site, &token).modern("x");
    assert_eq!(who_everywhere(&ann).await, ["ann"; 3]);
    let audit = setup.house.cli(["audit", "--json"]).await;
    for reason in [
        "its signature is wrong",
        "it is for another audience",
        "it has expired",
    ] {
        let refused = format!("this token is rejected: {reason}");
        let is_told = |line: &str| line.contains("credential") && line.contains(&refused);
        assert!(
            audit.stdout.lines().any(is_told),
            "{reason}: {}",
            audit.stdout
        );
    }
    assert!(!audit.stdout.contains("oauth bob"), "{}", audit.stdout);
    setup.end(site).await;
}
