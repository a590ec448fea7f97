//! The work of a person on the web page: questions, scripts as trees, and what stays after a restart.

use journeys::{
    fake::{LEGACY_VERSION, Step},
    house::fake,
    page::Tab,
    processes::kill,
};
use serde_json::{Value, json};

use crate::{
    calls::questions::{ELICIT, client_with, says},
    house_with_daemon,
};

/// The only question of a state that a page can answer.
fn question(state: &Value) -> Option<&Value> {
    let rows = state["attention"].as_object()?.values();
    rows.map(|it| &it["question"]).find(|it| it.is_object())
}

#[tokio::test]
async fn a_person_answers_a_question_in_place_of_the_client() {
    let house = house_with_daemon([fake("curious").tool("ask", Step::elicit("Sure?"))]);
    house.configure_more("[[rules]]\ndecision = \"ask\"\ntool = \"ask\"\n");
    house.cli(["reindex"]).await.ended(0);
    let tab = Tab::open(&house).await;
    let mut live = tab.live().await;
    let client = client_with(&house, json!({"elicitation": {}})).await;
    client.holds_back(ELICIT);
    let calling = client.execute("curious/ask", json!({}));
    let answering = async {
        // The approval of the call, then the question of the server.
        for (server, content) in [
            (Value::Null, json!({"allow": "once"})),
            (json!("curious"), json!({"text": "yes"})),
        ] {
            client.next(ELICIT).await;
            live.until(|state| {
                let rows = state["attention"].as_object().into_iter().flatten();
                let mut asked = rows.filter(|(_, it)| it["question"].is_object());
                asked.any(|(_, it)| it["server"] == server)
            })
            .await;
            let asked = question(&live.state).unwrap();
            assert!(asked["schema"]["properties"].is_object(), "{asked}");
            let path = format!("/api/v1/questions/{}", asked["id"]);
            let answer = json!({"action": "accept", "content": content});
            tab.post(&path, answer.clone(), 200).await;
            // The dialog of the client closes.
            client.next("notifications/cancelled").await;
            tab.post(&path, answer, 404).await;
        }
    };
    let (told, ()) = tokio::join!(calling, answering);
    assert_eq!(
        serde_json::from_str::<Value>(&told.good()).unwrap(),
        says("yes")
    );
    live.until(|state| question(state).is_none()).await;
    house.stops_clean().await;
}

#[tokio::test]
async fn the_calls_of_a_script_name_the_call_that_runs_it() {
    let house = house_with_daemon([fake("notes").tool("add_note", Step::Echo)]);
    house.cli(["reindex"]).await.ended(0);
    let tab = Tab::open(&house).await;
    let client = house.client().await;
    let script = "await notes.add_note({ n: 1 });\nawait notes.add_note({ n: 2 });\n1";
    client
        .execute("proxy/run_script", json!({ "script": script }))
        .await
        .good();
    client.execute("notes/add_note", json!({})).await.good();
    let calls = tab.get("/api/v1/calls?limit=4").await;
    let rows: Vec<[&Value; 3]> = calls["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| [&it["tool"], &it["run"], &it["parent"]])
        .collect();
    let run = rows[1][1];
    assert!(run.is_string(), "{calls}");
    let (none, added) = (&Value::Null, &json!("add_note"));
    let of_script = [added, none, run];
    let expected = [
        [added, none, none],
        [&json!("run_script"), run, none],
        of_script,
        of_script,
    ];
    assert_eq!(rows, expected);
    house.stops_clean().await;
}

#[tokio::test]
async fn an_open_tab_finds_the_next_daemon_at_the_same_address_and_needs_a_new_code() {
    let house = house_with_daemon([fake("notes").tool("add_note", Step::Echo)]);
    house.cli(["reindex"]).await.ended(0);
    let tab = Tab::open(&house).await;
    let live = tab.live().await;
    kill(house.daemon().await);
    drop(live);
    // A call of a client starts another daemon, which serves the page by itself.
    let client = house.serve();
    client.initialize(LEGACY_VERSION).await;
    client.execute("notes/add_note", json!({})).await.good();
    let answer = tab.send_when_served("GET", "/api/v1/status").await;
    assert_eq!(
        (answer.status, &answer.json["error"]["next_step"]),
        (401, &json!("proxy web"))
    );
    let again = Tab::open(&house).await;
    assert_eq!(again.host, tab.host);
    again.get("/api/v1/status").await;
    house.stops_clean().await;
}

/// Removes what changes from one moment to the next.
fn settled(mut servers: Value) -> Value {
    for server in servers["servers"].as_array_mut().unwrap() {
        server["memory_bytes"].take();
        server["processes"].take();
    }
    servers
}

#[tokio::test]
async fn commands_print_what_the_api_answers_with_and_without_a_daemon() {
    let house = house_with_daemon([fake("notes").tool("add_note", Step::Echo)]);
    house.configure_more("[[rules]]\ndecision = \"deny\"\nserver = \"nosuch\"\n");
    house.cli(["reindex"]).await.ended(0);
    let tab = Tab::open(&house).await;
    let client = house.client().await;
    client.execute("notes/add_note", json!({})).await.good();
    client.close().await;
    let of_command = async |args: &[&str]| house.cli(args).await.json();
    let servers = of_command(&["servers", "--json"]).await;
    assert_eq!(settled(servers), settled(tab.get("/api/v1/servers").await));
    let status = of_command(&["status", "--json"]).await;
    let same = tab.get("/api/v1/status").await;
    for key in ["pid", "version", "config", "scripts", "http"] {
        assert_eq!(status["daemons"][0][key], same["daemons"][0][key], "{key}");
    }
    let figures = of_command(&["stats", "--json", "--days", "7"]).await;
    assert_eq!(
        figures,
        tab.get("/api/v1/figures?by=tool&days=7&top=20").await
    );
    assert_eq!(figures["lines"][0]["calls"], 1);
    let reviews = of_command(&["review", "--json"]).await;
    assert_eq!(reviews, tab.get("/api/v1/reviews").await["reviews"]);
    let test = ["policy", "test", "--json", "notes/add_note"];
    let tested = of_command(&test).await;
    let asked = json!({"tool_name": "notes/add_note"});
    assert_eq!(tested, tab.post("/api/v1/policy/test", asked, 200).await);
    assert_eq!(tested["idle_rules"][0]["about"], "rule 1");
    let audit = async || {
        let output = house.cli(["audit", "--json"]).await;
        let lines = output.ended(0).lines();
        let lines = lines.map(|it| serde_json::from_str::<Value>(it).unwrap());
        lines.collect::<Value>()
    };
    let logged = audit().await;
    assert_eq!(logged, tab.get("/api/v1/calls").await["calls"]);

    // A change of the file shows at once.
    house.cli(["servers", "disable", "notes"]).await.ended(0);
    let off = of_command(&["servers", "--json"]).await;
    assert_eq!(off["servers"][0]["state"], "disabled");
    house.cli(["servers", "enable", "notes"]).await.ended(0);
    house.cli(["daemon", "stop"]).await.ended(0);
    assert_eq!(
        of_command(&["stats", "--json", "--days", "7"]).await,
        figures
    );
    assert_eq!(of_command(&test).await, tested);
    assert_eq!(of_command(&["review", "--json"]).await, reviews);
    assert_eq!(audit().await, logged);
    let alone = of_command(&["servers", "--json"]).await;
    assert_eq!(alone["servers"][0]["calls_30_days"], 1);
    assert_eq!(
        house.status().await,
        Value::Null,
        "no command started a daemon"
    );
    house.stops_clean().await;
}
