//! Life cycles of servers that are scripts for `sh`.

use std::{path::Path, time::Duration};

use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tool::ServerName;

use crate::{
    CallError, CallServers, Fleet, Launch, Lifecycle, ListServers, Request, ServerSpec, Spoken,
    Surroundings, Template,
};

/// A test fails if the expected event does not occur within this time.
const DEADLINE: Duration = Duration::from_mins(1);

/// Returns a server that answers each call, and runs `called` after it and `ended` at the end of
/// its input. `HERE` in either is replaced by the folder.
fn server(here: &Path, called: &str, ended: &str) -> ServerSpec {
    let script = r#"
        answer() {
            id=${1#*\"id\":}
            echo "{\"jsonrpc\":\"2.0\",\"id\":${id%%[,\}]*},\"result\":$2}"
        }
        about='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}'
        while read -r line; do
            case $line in
                *'"initialize"'*) answer "$line" "$about" ;;
                *'"ping"'*) answer "$line" '{}'; : >HERE/pinged ;;
                *'"tools/call"'*) answer "$line" '{"content":[]}'; CALLED ;;
            esac
        done
        ENDED
    "#;
    let script = script.replace("CALLED", called).replace("ENDED", ended);
    let script = script.replace("HERE", &here.display().to_string());
    run(&script)
}

/// Returns a server that runs this script.
fn run(script: &str) -> ServerSpec {
    let text = |text: &str| Template::parse(&printable::escape_template(text)).unwrap();
    let launch = Launch::Child {
        command: text("sh"),
        args: vec![text("-c"), text(script)],
        env: Vec::new(),
        cwd: None,
    };
    ServerSpec {
        spoken: Some(Spoken::default()),
        ..ServerSpec::new(name(), launch)
    }
}

fn name() -> ServerName {
    "any".parse().unwrap()
}

async fn call(fleet: &Fleet) -> Result<(), CallError> {
    let request = Request::call_tool("t", jsonrpc::json("{}".to_owned()).unwrap());
    let never = CancellationToken::new();
    let called = fleet.call(&name(), &request, &never).await;
    called.map(drop)
}

async fn until_there(path: &Path) {
    let looking = async {
        while !path.exists() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    let found = timeout(DEADLINE, looking).await;
    found.unwrap_or_else(|_| panic!("{} does not appear", path.display()));
}

#[tokio::test]
async fn a_server_that_left_and_whose_pipes_somebody_holds_is_started_again() {
    let folder = tempfile::tempdir().unwrap();
    // The process that holds the pipes ends with the folder.
    let leaves = "if [ ! -e HERE/held ]; then
            : >HERE/held
            setsid sh -c 'while [ -e HERE/held ]; do sleep 0.1; done' <&0 &
            exit 3
        fi";
    let fleet = Fleet::new(
        vec![server(folder.path(), leaves, ":")],
        Surroundings::default(),
    );
    call(&fleet).await.unwrap();
    // The call may have been sent to the dead process.
    if let Err(error) = call(&fleet).await {
        let told = error.to_string();
        assert!(told.contains("it exited with code 3"), "{told}");
    }
    call(&fleet).await.unwrap();
    fleet.stop().await;
}

#[tokio::test]
async fn a_server_that_fails_in_its_handshake_says_why_though_somebody_holds_its_pipes() {
    let folder = tempfile::tempdir().unwrap();
    // The process that holds the pipes ends with the folder.
    let script = ": >HERE/held
        setsid sh -c 'while [ -e HERE/held ]; do sleep 0.1; done' <&0 &
        read -r line
        exit 3";
    let script = script.replace("HERE", &folder.path().display().to_string());
    let spec = ServerSpec {
        start_timeout: 100 * DEADLINE,
        ..run(&script)
    };
    let fleet = Fleet::new(vec![spec], Surroundings::default());
    let failed = timeout(DEADLINE, call(&fleet)).await;
    let told = failed
        .expect("the start fails immediately")
        .unwrap_err()
        .to_string();
    assert!(told.contains("it exited with code 3"), "{told}");
    fleet.stop().await;
}

#[tokio::test]
async fn a_server_whose_launcher_left_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let spec = server(folder.path(), ":", ":");
    let Launch::Child { command, args, .. } = spec.launch.clone() else {
        unreachable!("the server is a child process");
    };
    let launcher = Template::parse("(\"$$0\" \"$$@\" <&3 &) 3<&0").unwrap();
    let flag = Template::parse("-c").unwrap();
    let launch = Launch::Child {
        command: command.clone(),
        args: [flag, launcher, command].into_iter().chain(args).collect(),
        env: Vec::new(),
        cwd: None,
    };
    let fleet = Fleet::new(vec![ServerSpec { launch, ..spec }], Surroundings::default());
    call(&fleet).await.unwrap();
    until_there(&folder.path().join("pinged")).await;
    call(&fleet).await.unwrap();
    assert_eq!(fleet.states()[0].starts, 1);
    fleet.stop().await;
}

/// Long enough for a caller that waited for the start, also in an emulator.
const IDLE: Duration = Duration::from_millis(200);

#[tokio::test]
async fn an_idle_server_has_time_to_write_down_what_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let spec = server(folder.path(), ":", "sleep 2; echo kept >HERE/kept");
    let spec = ServerSpec {
        idle_timeout: Some(IDLE),
        ..spec
    };
    let fleet = Fleet::new(vec![spec], Surroundings::default());
    call(&fleet).await.unwrap();
    until_there(&folder.path().join("kept")).await;
    fleet.stop().await;
}

/// The idle server would have 20 s, and writes its file after 15 s.
#[tokio::test]
async fn a_call_shortens_the_stop_of_an_idle_server() {
    let folder = tempfile::tempdir().unwrap();
    let stays = ": >HERE/deaf; trap '' TERM; sleep 15; : >HERE/late";
    let spec = ServerSpec {
        idle_timeout: Some(IDLE),
        ..server(folder.path(), ":", stays)
    };
    let fleet = Fleet::new(vec![spec], Surroundings::default());
    call(&fleet).await.unwrap();
    until_there(&folder.path().join("deaf")).await;
    call(&fleet).await.unwrap();
    assert!(!folder.path().join("late").exists());
    fleet.stop().await;
}

#[tokio::test]
async fn a_stop_in_a_hurry_does_not_wait_for_an_idle_server_that_stays() {
    let folder = tempfile::tempdir().unwrap();
    let spec = server(folder.path(), ":", ": >HERE/deaf; trap '' TERM; sleep 1000");
    let spec = ServerSpec {
        idle_timeout: Some(IDLE),
        ..spec
    };
    let fleet = Fleet::new(vec![spec], Surroundings::default());
    call(&fleet).await.unwrap();
    until_there(&folder.path().join("deaf")).await;
    fleet.stop().await;
}
