//! Servers that speak both eras, and clients of both that call them.

use std::{fs, path::Path};

use jsonrpc::mcp::Revision;
use parking_lot::Mutex;
use serde_json::{Value, value::RawValue};
use tokio::task::yield_now;

use super::*;
use crate::{Launch, RunState, Spoken, Template, question::fake::client};

mod own_secrets;
mod restarts;
mod spares;

/// A server that answers a call with its era and its process. It records its start and end in the
/// file `$1`; `$2` selects its reaction to a handshake.
const SERVER: &str = r#"
echo "start $$" >> "$1"
trap 'echo "end $$" >> "$1"' EXIT
[ "$2" = "hangs once" ] && [ ! -e "$1.once" ] && : > "$1.once" && sleep 600
[ "$2" = "runs once" ] && { mkdir "$1.lock" || exit 4; }
era=new
say() { echo "{\"jsonrpc\":\"2.0\",\"id\":$id,$1}"; }
while read -r line; do
    id=${line#*'"id":'}
    id=${id%%[,\}]*}
    case $line in
    *'"server/discover"'*)
        say '"result":{"resultType":"complete","supportedVersions":["2026-07-28"],
            "capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}' | tr -d '\n'; echo ;;
    *'"initialize"'*)
        case $2 in
        takes) era=old
            say '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},
                "serverInfo":{"name":"any","version":"1"}}' | tr -d '\n'; echo ;;
        refuses | "runs once") say '"error":{"code":-32601,"message":"no handshake"}' ;;
        ends) exit 3 ;;
        esac ;;
    *'"name":"hang"'*) echo "hang $$" >> "$1" ;;
    *'"name":"wait"'*)
        echo "wait $$" >> "$1"
        until [ -e "$1.gate" ]; do sleep 0.02; done
        say "\"result\":{\"era\":\"$era\",\"pid\":$$}" ;;
    *'"tools/list"'*) say '"result":{"resultType":"complete","tools":[]}' ;;
    *'"tools/call"'*)
        case $line in *'"progressToken"'*)
            token=${line#*'"progressToken":'}
            token=${token%%[,\}]*}
            progress="{\"progressToken\":$token,\"progress\":1,\"message\":\"$era\"}"
            echo "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":$progress}" ;;
        esac
        say "\"result\":{\"era\":\"$era\",\"pid\":$$}" ;;
    esac
done
"#;

/// The timeout for the start of a server that does not respond.
const START_TIMEOUT: Duration = Duration::from_secs(3);

struct FleetFixture {
    fleet: Fleet,
    notes: tempfile::NamedTempFile,
    spec: ServerSpec,
}

fn name() -> ServerName {
    "any".parse().unwrap()
}

fn spec(notes: &Path, handshake: &str) -> ServerSpec {
    let literal = |text: &str| Template::parse(&printable::escape_template(text)).unwrap();
    let notes = notes.to_str().unwrap();
    let args = ["-c", SERVER, "sh", notes, handshake].map(literal);
    let launch = Launch::Child {
        command: literal("sh"),
        args: args.into(),
        env: Vec::new(),
        cwd: None,
    };
    ServerSpec {
        start_timeout: START_TIMEOUT,
        ..ServerSpec::new(name(), launch)
    }
}

impl FleetFixture {
    /// Creates a scene and surveys the server.
    async fn surveyed(handshake: &str) -> Self {
        Self::with(|_| {}, handshake).await
    }

    async fn with(change: impl FnOnce(&mut ServerSpec), handshake: &str) -> Self {
        let notes = tempfile::NamedTempFile::new().unwrap();
        let mut spec = spec(notes.path(), handshake);
        change(&mut spec);
        let fleet = Fleet::new(vec![spec.clone()], Surroundings::default());
        let survey = fleet.survey(&name()).await.unwrap();
        assert!(survey.about.spoken.revision.is_stateless());
        Self { fleet, notes, spec }
    }

    /// Returns the era and the process that answer a client.
    async fn call(&self, takes_rounds: bool) -> (String, i64) {
        let answer = self.call_as(takes_rounds, None).await;
        let text = |key: &str| answer[key].as_str().unwrap().to_owned();
        (text("era"), answer["pid"].as_i64().unwrap())
    }

    async fn call_as(&self, takes_rounds: bool, connection: Option<u64>) -> Value {
        let request = Request {
            asks: Some(client(takes_rounds)),
            client: connection.map(|connection| tool::ClientId {
                connection: Some(connection),
                name: "client".into(),
                folder: None,
                caller: None,
            }),
            ..Request::new("tools/call", Vec::new())
        };
        let (name, cancel) = (name(), CancellationToken::new());
        let answer = self.fleet.call(&name, &request, &cancel).await.unwrap();
        serde_json::from_str(answer.as_str()).unwrap()
    }

    /// Returns the revisions of the running processes, in the order of their rows.
    fn running(&self) -> Vec<Revision> {
        let states = self.fleet.states().into_iter();
        let ready = states.filter(|it| it.state == RunState::Ready);
        ready.map(|it| it.revision.unwrap()).collect()
    }

    async fn until_running(&self, expected: &[Revision]) {
        while self.running() != expected {
            yield_now().await;
        }
    }

    /// Returns the records that its processes wrote.
    fn notes(&self) -> Vec<String> {
        let notes = fs::read_to_string(self.notes.path()).unwrap();
        notes.lines().map(str::to_owned).collect()
    }
}

const OLD: Revision = Revision::LAST_WITH_HANDSHAKE;
const NEW: Revision = Revision::FIRST_STATELESS;

#[tokio::test]
async fn clients_of_both_eras_call_one_process_each() {
    for modern_first in [true, false] {
        let scene = FleetFixture::surveyed("takes").await;
        let first = scene.call(modern_first).await;
        let second = scene.call(!modern_first).await;
        assert_ne!(first.1, second.1);
        for _ in 0..2 {
            assert_eq!(scene.call(modern_first).await, first);
            assert_eq!(scene.call(!modern_first).await, second);
        }
        let era = |is_modern| if is_modern { "new" } else { "old" };
        assert_eq!(
            (first.0.as_str(), second.0.as_str()),
            (era(modern_first), era(!modern_first))
        );
        assert_eq!(scene.running(), [NEW, OLD]);
        scene.fleet.stop().await;
    }
}

#[tokio::test]
async fn a_call_hears_the_progress_of_its_own_process_alone() {
    let scene = FleetFixture::surveyed("takes").await;
    let call = async |takes_rounds: bool, era: &str| {
        let (progress, heard) = heard();
        let request = Request {
            asks: Some(client(takes_rounds)),
            progress: Some(progress),
            ..Request::new("tools/call", Vec::new())
        };
        let never = CancellationToken::new();
        for times in 1..=3 {
            scene.fleet.call(&name(), &request, &never).await.unwrap();
            let heard = heard.lock();
            assert!(
                heard.len() == times && heard.iter().all(|it| it.contains(era)),
                "{heard:?}"
            );
        }
    };
    tokio::join!(call(false, "old"), call(true, "new"));
    assert_eq!(scene.running(), [NEW, OLD]);
    scene.fleet.stop().await;
}

/// Creates a sink for progress that records it.
fn heard() -> (crate::ProgressSink, Arc<Mutex<Vec<String>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&heard);
    let sink = move |params: &RawValue| note.lock().push(params.get().to_owned());
    (Arc::new(sink), heard)
}

#[tokio::test]
async fn callers_of_one_era_have_one_process() {
    let scene = FleetFixture::surveyed("takes").await;
    let first = scene.call(false).await;
    assert_eq!(first.0, "old");
    // The process of the survey is not used by any client and stops.
    scene.until_running(&[OLD]).await;
    assert_eq!(scene.call(false).await, first);
    // A caller that is not a client uses the running process.
    scene.fleet.survey(&name()).await.unwrap();
    assert_eq!(scene.running(), [OLD]);
    scene.fleet.stop().await;

    let scene = FleetFixture::surveyed("takes").await;
    let first = scene.call(true).await;
    assert_eq!(scene.call(true).await, first);
    assert_eq!(scene.notes().len(), 1);
    scene.fleet.stop().await;
}

#[tokio::test]
async fn a_server_that_takes_no_handshake_serves_all_clients_with_one_process() {
    for how in ["refuses", "ends", "keeps silent"] {
        let scene = FleetFixture::surveyed(how).await;
        let of_before = scene.call(false).await;
        assert_eq!(of_before.0, "new", "{how}");
        let starts = scene.notes().len();
        assert_eq!(scene.call(true).await, of_before, "{how}");
        assert_eq!(scene.call(false).await, of_before, "{how}");
        assert_eq!(
            scene.notes().len(),
            starts,
            "{how}: the handshake is tried once"
        );
        assert_eq!(scene.fleet.states().len(), 1, "{how}");
        assert!(!scene.fleet.is_down(&name()), "{how}");
        scene.fleet.stop().await;
    }
}

#[tokio::test]
async fn a_server_of_the_first_era_alone_has_one_process() {
    let notes = tempfile::NamedTempFile::new().unwrap();
    let mut spec = spec(notes.path(), "takes");
    spec.spoken = Some(Spoken::default());
    let fleet = Fleet::new(vec![spec.clone()], Surroundings::default());
    let scene = FleetFixture { fleet, notes, spec };
    let first = scene.call(true).await;
    assert_eq!(scene.call(false).await, first);
    assert_eq!((first.0.as_str(), scene.running()), ("old", vec![OLD]));
    scene.fleet.stop().await;
}

#[tokio::test]
#[expect(
    clippy::disallowed_methods,
    reason = "it kills a child of its own that runs"
)]
async fn a_process_that_was_killed_is_begun_anew_in_its_era() {
    let scene = FleetFixture::surveyed("takes").await;
    let (old, new) = (scene.call(false).await, scene.call(true).await);
    for (is_modern, before) in [(false, &old), (true, &new)] {
        let pid = rustix::process::Pid::from_raw(before.1.try_into().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        let is_known = || {
            let states = scene.fleet.states().into_iter();
            let pids: Vec<_> = states.filter_map(|it| it.pid).collect();
            pids.contains(&u32::try_from(before.1).unwrap())
        };
        while is_known() {
            yield_now().await;
        }
        let after = scene.call(is_modern).await;
        assert_eq!(after.0, before.0);
        assert_ne!(after.1, before.1);
    }
    assert_ne!(scene.call(true).await, new);
    assert_eq!(scene.running(), [NEW, OLD]);
    scene.fleet.stop().await;
}

#[tokio::test]
async fn both_processes_are_replaced_one_after_the_other_ended() {
    for is_changed in [true, false] {
        let scene = FleetFixture::surveyed("takes").await;
        let (old, new) = (scene.call(false).await, scene.call(true).await);
        if is_changed {
            let mut spec = scene.spec.clone();
            spec.timeout *= 2;
            assert!(!scene.fleet.apply(vec![spec]).is_empty());
        } else {
            scene.fleet.restart(&name(), false).await.unwrap();
        }
        for (is_modern, before) in [(false, &old), (true, &new)] {
            let after = scene.call(is_modern).await;
            assert_eq!(after.0, before.0);
            assert_ne!(after.1, before.1);
            let notes = scene.notes();
            let at = |note: String| notes.iter().position(|it| *it == note).unwrap();
            let (ended, started) = (format!("end {}", before.1), format!("start {}", after.1));
            assert!(at(ended) < at(started), "{notes:?}");
        }
        assert_eq!(scene.running(), [NEW, OLD]);
        scene.fleet.stop().await;
    }
}

#[tokio::test]
async fn each_process_rests_when_its_own_clients_do() {
    let rest = |spec: &mut ServerSpec| spec.idle_timeout = Some(Duration::from_millis(200));
    let scene = FleetFixture::with(rest, "takes").await;
    scene.call(true).await;
    let first = scene.call(false).await;
    scene.until_running(&[]).await;
    let again = scene.call(false).await;
    assert_eq!(again.0, "old");
    assert_ne!(again.1, first.1);
    scene.fleet.stop().await;
}

#[tokio::test]
async fn a_client_with_a_server_of_its_own_has_it_in_its_era() {
    let own = |spec: &mut ServerSpec| spec.scope = ServerScope::Client;
    let scene = FleetFixture::with(own, "takes").await;
    let mut pids = Vec::new();
    for (connection, is_modern) in [(1, false), (2, true), (3, false)] {
        let answer = scene.call_as(is_modern, Some(connection)).await;
        assert_eq!(answer["era"], if is_modern { "new" } else { "old" });
        assert_eq!(scene.call_as(is_modern, Some(connection)).await, answer);
        assert!(!pids.contains(&answer["pid"]));
        pids.push(answer["pid"].clone());
    }
    scene.fleet.forget_client(1);
    scene.fleet.forget_client(2);
    while scene.running().len() > 2 {
        yield_now().await;
    }
    scene.fleet.stop().await;

    let scene = FleetFixture::with(own, "refuses").await;
    let answer = scene.call_as(false, Some(1)).await;
    assert_eq!(answer["era"], "new");
    assert_eq!(scene.call_as(false, Some(1)).await, answer);
    scene.fleet.stop().await;
}

#[tokio::test]
async fn the_shared_limit_of_calls_holds_over_both_processes() {
    let one = |spec: &mut ServerSpec| spec.calls_max = std::num::NonZeroUsize::new(1);
    let scene = FleetFixture::with(one, "takes").await;
    scene.call(true).await;
    let roster = &scene.fleet.roster;
    let of = |is_modern| {
        roster
            .find(&name(), None, Some(&client(is_modern)))
            .unwrap()
    };
    let place = Arc::clone(&of(true).places).try_acquire_owned().unwrap();
    assert!(of(false).places.try_acquire().is_err());
    drop(place);
    scene.fleet.stop().await;
}
