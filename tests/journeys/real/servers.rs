//! The six real servers behind the three tools.

use std::{process::Stdio, time::Duration};

use journeys::{
    client::{Client, DEADLINE},
    house::{Fake, House},
    port::ReservedPort,
    real::RealServers,
};
use serde_json::{Value, json};
use tokio::{
    net::TcpStream,
    process::Child,
    time::{interval, timeout},
};

use crate::{
    house, programs, real_servers,
    results::long_results::{BUDGET, fitting, joined},
    tokens,
};

/// Creates a house with a folder `open` and these servers, and indexes it.
async fn house_of(chosen: &[&str]) -> (House, Client) {
    let real = real_servers();
    let house = house::<Fake>([]);
    std::fs::create_dir(house.path("open")).unwrap();
    house.write("open/hello.txt", "Hello.");
    let repository = house.repository();
    for (name, server) in [
        ("everything", real.everything()),
        ("filesystem", real.filesystem(&house.path("open"))),
        ("memory", real.memory(&house.path("memory.jsonl"))),
        ("sequential-thinking", real.sequential_thinking()),
        ("time", real.time()),
        ("git", real.git(&repository)),
    ] {
        if chosen.contains(&name) {
            house.add(server);
        }
    }
    house.indexed().await;
    let client = house.client().await;
    (house, client)
}

const ALL: [&str; 6] = [
    "everything",
    "filesystem",
    "memory",
    "sequential-thinking",
    "time",
    "git",
];

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn all_six_are_found_and_called() {
    let (house, client) = house_of(&ALL).await;
    let folder = house.path("open");
    let repository = house.path("repository");
    let calls: [(&str, &str, Value, &str); 6] = [
        (
            "add two numbers",
            "everything/get-sum",
            json!({ "a": 2, "b": 40 }),
            "The sum of 2 and 40 is 42.",
        ),
        (
            "read a text file",
            "filesystem/read_text_file",
            json!({ "path": folder.join("hello.txt") }),
            "Hello.",
        ),
        (
            "create entities in the knowledge graph",
            "memory/create_entities",
            json!({ "entities": [{ "name": "Ada", "entityType": "person", "observations": [] }] }),
            "Ada",
        ),
        (
            "sequential thinking",
            "sequential-thinking/sequentialthinking",
            json!({ "thought": "hm", "thoughtNumber": 1, "totalThoughts": 2, "nextThoughtNeeded": true }),
            "\"thoughtHistoryLength\": 1",
        ),
        (
            "convert time between time zones",
            "time/convert_time",
            json!({ "source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo" }),
            "T21:00:00+09:00",
        ),
        (
            "git status of a repository",
            "git/git_status",
            json!({ "repo_path": repository }),
            "working tree clean",
        ),
    ];
    for (query, tool, input, expected) in calls {
        let found = client.search(query).await.good();
        assert!(found.contains(&format!("{tool}(")), "{query}:\n{found}");
        assert!(
            client.describe(tool).await.good().contains("\ninput {"),
            "{tool}"
        );
        let answer = client.execute(tool, input).await.good();
        assert!(answer.contains(expected), "{tool}: {answer}");
    }
    house.stops_clean().await;
}

/// Creates a folder with many files, and a repository with many commits.
fn fill(house: &House) {
    for folder in 0..30 {
        let path = house.path(format!("open/folder-{folder}"));
        std::fs::create_dir(&path).unwrap();
        for file in 0..30 {
            std::fs::write(path.join(format!("file-{file}.txt")), "x").unwrap();
        }
    }
    let repository = house.path("repository");
    let commit = |number: usize| {
        format!(
            "commit refs/heads/master\ncommitter Ada <ada@example.com> {} +0000\ndata <<END\n\
             Change number {number} of this repository\nEND\n\n",
            1_700_000_000 + number * 60
        )
    };
    let stream: String = (0..400).map(commit).collect::<Vec<_>>().concat();
    let mut import = std::process::Command::new("git");
    import
        .arg("-C")
        .arg(&repository)
        .args(["fast-import", "--quiet", "--force"]);
    let mut import = import.stdin(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut import.stdin.take().unwrap(), stream.as_bytes()).unwrap();
    assert!(import.wait().unwrap().success());
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn long_outputs_of_real_servers_are_cut_and_read_to_the_end() {
    let (house, client) = house_of(&["filesystem", "git"]).await;
    fill(&house);
    let tree = json!({ "path": house.path("open") });
    let log = json!({ "repo_path": house.path("repository"), "max_count": 400 });
    for (tool, input) in [("filesystem/directory_tree", tree), ("git/git_log", log)] {
        let call = json!({ "tool_name": tool, "tool_input": input, "raw": true });
        let whole = client.call("execute_dynamic_tool", call).await.good();
        assert!(tokens(&whole) > 5_000, "{tool}: {} tokens", tokens(&whole));
        let first = client.execute(tool, input).await;
        let texts = fitting(&first, BUDGET);
        if tool.ends_with("tree") {
            let lines: Vec<&str> = texts[0].lines().collect();
            let shown = lines[1..lines.len() - 1].join("\n");
            let shown: Value = serde_json::from_str(&shown).unwrap();
            assert_eq!(shown[0]["name"], "folder-0", "{shown}");
        }
        let footer = texts.last().unwrap();
        assert_eq!(joined(&client, footer, BUDGET).await, whole, "{tool}");
    }
    house.stops_clean().await;
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn a_session_with_the_mistakes_models_make() {
    let (house, client) = house_of(&["everything", "filesystem"]).await;
    let wrong = client
        .execute("everything/get_summ", json!({ "a": 1, "b": 2 }))
        .await
        .bad();
    assert!(wrong.contains("everything/get-sum("), "{wrong}");
    let stringified =
        json!({ "tool_name": "everything/get-sum", "tool_input": "{\"a\":1,\"b\":2}" });
    let sum = client
        .call("execute_dynamic_tool", stringified)
        .await
        .good();
    assert_eq!(sum, "The sum of 1 and 2 is 3.");
    let missing = client
        .execute("everything/get-sum", json!({ "a": 1 }))
        .await
        .bad();
    assert!(missing.starts_with("error invalid_input: "), "{missing}");
    assert!(
        missing.contains("everything/get-sum(a: number, b: number)"),
        "{missing}"
    );
    let image = client.execute("everything/get-tiny-image", json!({})).await;
    assert!(image.content().iter().any(|block| block["type"] == "image"));
    let outside = house.write("outside.txt", "secret");
    let denied = client
        .execute("filesystem/read_text_file", json!({ "path": outside }))
        .await
        .bad();
    assert!(denied.contains("Access denied"), "{denied}");
    house.stops_clean().await;
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn nothing_is_left_though_real_servers_have_many_processes() {
    let (house, client) = house_of(&["everything", "time"]).await;
    client
        .execute("everything/get-sum", json!({ "a": 1, "b": 2 }))
        .await
        .good();
    client.kill().await;
    assert_eq!(house.all_gone().await, Ok(()), "{:?}", programs());
}

/// Starts a remote server that the proxy has not started.
pub(super) async fn listening(real: &RealServers) -> (Child, ReservedPort) {
    let port = ReservedPort::new();
    let mut command = real.everything_over_http(port.number()).to_command();
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let server = command.kill_on_drop(true).spawn().unwrap();
    let mut looks = interval(Duration::from_millis(20));
    let listens = async {
        while TcpStream::connect(port.address()).await.is_err() {
            looks.tick().await;
        }
    };
    timeout(DEADLINE, listens)
        .await
        .expect("the server listens");
    (server, port)
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn a_remote_server_works_until_it_is_gone() {
    let real = real_servers();
    let (mut server, port) = listening(&real).await;
    let house = house::<Fake>([]);
    house.configure(&format!(
        "[servers.far]\nurl = \"http://{}/mcp\"\nheaders = {{ X-Team = \"web\" }}\n",
        port.address()
    ));
    house.indexed().await;
    let client = house.client().await;
    let sum = client
        .execute("far/get-sum", json!({ "a": 2, "b": 40 }))
        .await;
    assert_eq!(sum.good(), "The sum of 2 and 40 is 42.");
    server.kill().await.unwrap();
    let gone = client
        .execute("far/get-sum", json!({ "a": 2, "b": 40 }))
        .await
        .bad();
    assert!(
        gone.starts_with("error server_unavailable: far: "),
        "{gone}"
    );
    house.stops_clean().await;
}
