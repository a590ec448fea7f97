//! Commands with programs that every Linux has.

use std::{path::Path, time::Duration};

use jsonrpc::Json;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tool::{ClientId, ServerName};

use super::define;
use crate::{
    CallError, CallServers, Fleet, Launch, Lifecycle, ListServers, Request, Sandbox, ServerSpec,
    Surroundings, Template,
    commands::{CommandDefinition, CommandSet, CommandTool},
    find_command,
};

/// A test fails if the expected event does not occur within this time.
const DEADLINE: Duration = Duration::from_mins(1);

fn server() -> ServerName {
    "commands".parse().unwrap()
}

fn spec(tools: &[(&str, CommandDefinition)]) -> ServerSpec {
    let tools = tools
        .iter()
        .map(|(name, it)| CommandTool::new(name, it).unwrap());
    let set = CommandSet {
        tools: tools.collect(),
        env: vec![("LC_ALL".to_owned(), Template::literal("C"))],
        cwd: None,
    };
    ServerSpec::new(server(), Launch::Commands(set))
}

fn fleet(tools: &[(&str, CommandDefinition)]) -> Fleet {
    Fleet::new(vec![spec(tools)], Surroundings::default())
}

async fn call(fleet: &Fleet, request: &Request) -> Result<Value, CallError> {
    let never = CancellationToken::new();
    let called = fleet.call(&server(), request, &never).await;
    called.map(|it| serde_json::from_str(it.as_str()).unwrap())
}

fn request(tool: &str, arguments: &Value) -> Request {
    Request::call_tool(tool, Json::of_built(arguments.to_string()))
}

#[track_caller]
fn text(result: &Value, is_error: bool) -> String {
    assert_eq!(result["isError"], is_error, "{result}");
    result["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[tokio::test]
async fn a_program_is_run_and_its_end_is_the_result() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "one\ntwo\n").unwrap();
    let sort = CommandDefinition {
        stdin: Some("{text}\n".to_owned()),
        ..define(&["sort", "{order?}"])
    };
    let found = CommandDefinition {
        ok_codes: vec![0, 1],
        ..define(&["grep", "--regexp={pattern}", "a.txt"])
    };
    let strict = define(&["grep", "--regexp={pattern}", "a.txt"]);
    let lacking = define(&["no-such-program"]);
    let tools = [
        ("sort", sort),
        ("found", found),
        ("strict", strict),
        ("lacking", lacking),
    ];
    let fleet = fleet(&tools);
    let survey = fleet.survey(&server()).await.unwrap();
    let names: Vec<&str> = survey.tools.iter().map(tool::Tool::name).collect();
    assert_eq!(names, ["sort", "found", "strict", "lacking"]);

    let sorted = call(&fleet, &request("sort", &json!({"text": "b\na"})))
        .await
        .unwrap();
    assert_eq!(text(&sorted, false), "a\nb\n");
    let option = json!({"text": "b", "order": "--output=x"});
    let refused = call(&fleet, &request("sort", &option)).await.unwrap();
    assert!(text(&refused, true).contains("`order` begins with `-`"));

    let in_folder = |tool: &str, pattern: &str| Request {
        client: Some(ClientId {
            connection: None,
            folder: Some(folder.path().into()),
            name: "client".into(),
            caller: None,
        }),
        ..request(tool, &json!({ "pattern": pattern }))
    };
    let two = call(&fleet, &in_folder("found", "tw")).await.unwrap();
    assert_eq!(text(&two, false), "two\n");
    let none = call(&fleet, &in_folder("found", "x")).await.unwrap();
    assert_eq!(none, json!({"content": [], "isError": false}));
    let none = call(&fleet, &in_folder("strict", "x")).await.unwrap();
    assert_eq!(text(&none, true), "`strict`: it exited with code 1");
    let bad = call(&fleet, &in_folder("found", "[")).await.unwrap();
    let bad = text(&bad, true);
    let head = "`found`: it exited with code 2\nstderr:\n";
    assert!(bad.starts_with(head) && bad.contains("grep: "), "{bad}");

    let lacking = call(&fleet, &request("lacking", &json!({}))).await.unwrap();
    let why = "`lacking` was not run: command `no-such-program` not found on its `PATH`\ninstall";
    assert!(text(&lacking, true).starts_with(why), "{lacking}");
    let unknown = call(&fleet, &request("other", &json!({}))).await;
    assert!(
        matches!(unknown, Err(CallError::Protocol { .. })),
        "{unknown:?}"
    );
    let missing = find_command(&spec(&tools)).unwrap_err();
    assert!(missing.why.contains("`no-such-program`"), "{missing}");
    fleet.end().await;
}

#[tokio::test]
async fn output_is_bounded_and_lines_of_stderr_are_the_last() {
    let all = define(&["cat", "/dev/zero"]);
    let loud = define(&["sh", "-c", "seq 100 >&2; echo out; exit 3"]);
    let fleet = fleet(&[("all", all), ("loud", loud)]);
    let cut = call(&fleet, &request("all", &json!({}))).await.unwrap();
    let cut = text(&cut, false);
    assert!(cut.ends_with("[the output is longer than 16 MiB; the program was ended]"));
    let failed = call(&fleet, &request("loud", &json!({}))).await.unwrap();
    let failed = text(&failed, true);
    let head = "`loud`: it exited with code 3\nstderr:\n81\n82\n";
    assert!(failed.starts_with(head), "{failed}");
    assert!(failed.ends_with("100\nstdout:\nout\n"), "{failed}");
    fleet.end().await;
}

/// Waits until the process whose id is in this file exists, or does not.
async fn until_alive(file: &Path, is_alive: bool) {
    let looking = async {
        loop {
            let id = std::fs::read_to_string(file).unwrap_or_default();
            let process = Path::new("/proc").join(id.trim());
            if !id.trim().is_empty() && process.exists() == is_alive {
                return;
            }
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(DEADLINE, looking).await.unwrap();
}

/// A command that starts another process, writes its id to `pid`, and waits for it.
fn slow() -> CommandDefinition {
    define(&[
        "sh",
        "-c",
        "sleep 1000 & echo $! >$1.new; mv $1.new $1; wait",
        "sh",
        "{pid}",
    ])
}

#[tokio::test]
async fn a_cancelled_or_late_call_ends_all_that_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let fleet = fleet(&[("slow", slow())]);
    let pid = folder.path().join("cancelled");
    let cancel = CancellationToken::new();
    let slow = request("slow", &json!({ "pid": pid }));
    let name = server();
    let (ended, ()) = tokio::join!(fleet.call(&name, &slow, &cancel), async {
        until_alive(&pid, true).await;
        cancel.cancel();
    });
    assert!(matches!(ended, Err(CallError::Cancelled)), "{ended:?}");
    until_alive(&pid, false).await;

    let pid = folder.path().join("late");
    let late = Request {
        timeout: Some(Duration::from_millis(500)),
        ..request("slow", &json!({ "pid": pid }))
    };
    let ended = call(&fleet, &late).await;
    assert!(
        matches!(ended, Err(CallError::TimedOut { .. })),
        "{ended:?}"
    );
    if pid.exists() {
        until_alive(&pid, false).await;
    }
    fleet.end().await;
}

#[tokio::test]
async fn the_end_of_the_fleet_ends_running_commands() {
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    let fleet = fleet(&[("slow", slow())]);
    let slow = request("slow", &json!({ "pid": pid }));
    let (ended, ()) = tokio::join!(call(&fleet, &slow), async {
        until_alive(&pid, true).await;
        fleet.end().await;
        until_alive(&pid, false).await;
    });
    assert!(
        matches!(ended, Err(CallError::Unavailable { .. })),
        "{ended:?}"
    );
}

#[tokio::test]
async fn variables_and_secrets_of_the_server_apply() {
    let mut spec = spec(&[("env", define(&["env", "--", "printenv", "{name}"]))]);
    let Launch::Commands(set) = &mut spec.launch else {
        unreachable!();
    };
    let greeting = Template::parse("${GREETING:-hello}").unwrap();
    set.env.push(("GREETING".to_owned(), greeting));
    let keys: Vec<String> = spec
        .launch
        .texts()
        .into_iter()
        .map(|(key, _)| key)
        .collect();
    assert!(
        keys.contains(&"servers.commands.env.GREETING".to_owned()),
        "{keys:?}"
    );
    let fleet = Fleet::new(vec![spec], Surroundings::default());
    let said = call(&fleet, &request("env", &json!({"name": "GREETING"})))
        .await
        .unwrap();
    assert_eq!(text(&said, false), "hello\n");
    let hidden = call(&fleet, &request("env", &json!({"name": "CARGO_PKG_NAME"})))
        .await
        .unwrap();
    assert!(text(&hidden, true).contains("code 1"));
    fleet.end().await;
}

#[test]
fn the_sandbox_of_the_server_is_that_of_each_program() {
    let spec = ServerSpec {
        sandbox: Some(Sandbox::default()),
        ..spec(&[("ls", define(&["ls"]))])
    };
    let Launch::Commands(set) = &spec.launch else {
        unreachable!();
    };
    let programs = set.programs(&spec);
    assert_eq!(programs[0].sandbox, spec.sandbox);
}
