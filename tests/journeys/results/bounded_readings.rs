//! A kept result is read with a pattern, a pointer or an expression that never ends. A few separate
//! processes run such readings, and are stopped in time.

use std::{fmt::Write as _, fs};

use journey::journey;
use journeys::{
    client::Client,
    fake::Step,
    house::{House, fake},
    processes,
};
use serde_json::{Value, json};

use crate::{
    calling, handle, house_with_daemon,
    results::long_results::{items, read},
    until,
};

/// The maximum number of concurrent reading processes.
const READINGS_MAX: usize = 2;

/// A daemon, one of its clients, and the handle of a result that was cut.
struct ReadingSetup {
    house: House,
    client: Client,
    daemon: u32,
    handle: String,
}

impl ReadingSetup {
    async fn of(text: String) -> Self {
        let house = house_with_daemon([fake("big").tool("text", Step::Text(text))]);
        house.indexed().await;
        let client = house.client().await;
        let answer = client.execute("big/text", json!({})).await.good();
        Self {
            handle: handle(&answer).to_owned(),
            daemon: house.daemon().await,
            client,
            house,
        }
    }

    async fn of_list() -> Self {
        Self::of(json!(items(900)).to_string()).await
    }

    /// Starts a reading and waits until a process runs it.
    async fn begin(&self, mut what: Value) -> (u64, u32) {
        what["handle"] = json!(self.handle);
        let call = calling("proxy/read_result", &what);
        let (id, _) = self.client.begin("tools/call", call).await;
        until("a process that reads", || !self.readers().is_empty()).await;
        (id, self.readers()[0])
    }

    /// Returns the processes that read for the daemon.
    fn readers(&self) -> Vec<u32> {
        let children = processes::children(self.daemon).into_iter();
        let living = children.filter(|(_, is_dead)| !is_dead);
        let readers = living.filter(|(pid, _)| {
            let words = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            words.contains("\0helper\0")
        });
        readers.map(|(pid, _)| pid).collect()
    }

    async fn stops_with(self, reader: u32) {
        self.house.cli(["daemon", "stop"]).await.ended(0);
        until("the end of the daemon", || !processes::lives(self.daemon)).await;
        until("the end of the reading", || !processes::lives(reader)).await;
        self.house.stops_clean().await;
    }
}

#[journey(alone = "it always uses a daemon")]
async fn a_daemon_stops_under_an_expression_that_never_ends() {
    let scene = ReadingSetup::of_list().await;
    let (_, reader) = scene.begin(endless()).await;
    scene.stops_with(reader).await;
}

#[journey(alone = "it always uses a daemon")]
async fn a_daemon_stops_under_a_pattern_that_takes_for_ever() {
    let scene = ReadingSetup::of("A".repeat(20 << 20)).await;
    let pattern = json!({ "grep": "(?:A{1,500}){1,8}[^A]|A" });
    let (_, reader) = scene.begin(pattern).await;
    scene.stops_with(reader).await;
}

#[journey(alone = "it always uses a daemon")]
async fn a_reading_ends_with_its_call_and_with_its_daemon() {
    let scene = ReadingSetup::of_list().await;
    let (id, reader) = scene.begin(endless()).await;
    scene.client.cancel(id).await;
    until("the end of the reading", || !processes::lives(reader)).await;
    let (_, reader) = scene.begin(endless()).await;
    processes::kill(scene.daemon);
    until("the end of the reading", || !processes::lives(reader)).await;
    scene.house.stops_clean().await;
}

#[journey(alone = "it always uses a daemon")]
async fn the_time_a_call_gives_holds_for_a_reading() {
    let scene = ReadingSetup::of_list().await;
    let mut input = endless();
    input["handle"] = json!(scene.handle);
    let call = json!({
        "tool_name": "proxy/read_result", "tool_input": input, "timeout_ms": 300
    });
    let error = scene.client.call("execute_dynamic_tool", call).await.bad();
    assert_eq!(
        error,
        "error timeout: proxy/read_result gave no answer within 300 ms; it was stopped, and changed \
         nothing. To wait longer, put \"proxy/timeout_ms\":600 into tool_input."
    );
    scene.house.stops_clean().await;
}

#[journey(alone = "it always uses a daemon")]
async fn few_read_at_one_time_and_the_others_have_their_turn() {
    let scene = ReadingSetup::of_list().await;
    let mut input = endless();
    input["handle"] = json!(scene.handle);
    let call = json!({
        "tool_name": "proxy/read_result", "tool_input": input, "timeout_ms": 1_000
    });
    let many = json!({ "calls": vec![call; 64] });
    let mut answers = Vec::new();
    for _ in 0..4 {
        let call = calling("proxy/call_many", &many);
        let (id, _) = scene.client.begin("tools/call", call).await;
        answers.push(id);
    }
    // A request that waits for one of them has a timeout of its own.
    let ids = json!({ "handle": scene.handle, "select": ".[7].id" });
    let short = read(&scene.client, ids);
    tokio::pin!(short);
    let mut most = 0;
    let mut looks = tokio::time::interval(std::time::Duration::from_millis(5));
    let answer = loop {
        tokio::select! {
            answer = &mut short => break answer,
            _ = looks.tick() => most = most.max(scene.readers().len()),
        }
    };
    assert_eq!(answer.good(), "7\n");
    assert!(
        (1..=READINGS_MAX).contains(&most),
        "{most} concurrent readings"
    );
    for id in answers {
        scene.client.cancel(id).await;
    }
    scene.house.stops_clean().await;
}

#[journey(alone = "it always uses a daemon")]
async fn a_reading_leaves_no_core_and_knows_its_limits() {
    let scene = ReadingSetup::of_list().await;
    let (_, reader) = scene.begin(endless()).await;
    // The process runs before it has set its own limits.
    let limits = || fs::read_to_string(format!("/proc/{reader}/limits")).unwrap_or_default();
    until("no room for a core", || {
        let cores = limits();
        let cores = cores.lines().find(|line| line.starts_with("Max core file"));
        cores.is_some_and(|line| line.split_whitespace().nth(4) == Some("0"))
    })
    .await;
    let memory = 2_u64 << 30;
    until("a bound on its memory", || {
        limits().contains(&memory.to_string())
    })
    .await;
    scene.stops_with(reader).await;
}

#[journey(alone = "it always uses a daemon")]
async fn a_search_that_takes_too_long_tells_what_it_has_found() {
    let scene = ReadingSetup::of("A".repeat(20 << 20)).await;
    let grep = json!({ "handle": scene.handle, "grep": ".*[^A]|A" });
    let found = read(&scene.client, grep).await.good();
    assert!(found.contains("1:byte 0: …AAA"), "{found}");
    assert!(
        found.contains("a simpler expression gets further"),
        "{found}"
    );
    scene.house.stops_clean().await;
}

#[journey(alone = "it always uses a daemon")]
async fn the_slip_of_a_model_is_told_at_once_however_long_the_result() {
    let mut text = String::new();
    write!(text, "{}", json!(items(2_000))).unwrap();
    assert!(text.len() > 83_000, "{}", text.len());
    let scene = ReadingSetup::of(text).await;
    let slip = json!({ "handle": scene.handle, "select": ".title" });
    let error = read(&scene.client, slip).await.bad();
    assert!(
        error.starts_with(
            "error invalid_input: select: cannot index array with \"title\": for every item \
             `.[].title`, for the first `.[0].title`."
        ),
        "{error}"
    );
    let large = json!({ "handle": scene.handle, "grep": "(?:\\w{1,900}){1,900}" });
    let error = read(&scene.client, large).await.bad();
    assert!(
        error.contains("takes more than 4 MiB; repeat less"),
        "{error}"
    );
    scene.house.stops_clean().await;
}

fn endless() -> Value {
    json!({ "select": "last(range(1e18))" })
}
