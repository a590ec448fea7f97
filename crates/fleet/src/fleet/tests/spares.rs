//! Calls that would wait for calls of other clients.

use std::pin::pin;

use super::*;

/// A server of which `wait` is known to ask, with a client of each session: both use one process.
async fn scene(has_spares: bool, handshake: &str) -> FleetFixture {
    let change = |spec: &mut ServerSpec| {
        spec.asking_calls = vec!["tools/call wait".to_owned()];
        spec.has_spares = has_spares;
    };
    let scene = FleetFixture::with(change, handshake).await;
    let first = scene.call(false).await;
    assert_eq!(scene.call(true).await, first);
    scene
}

impl FleetFixture {
    /// Calls a tool in the other session than [`Self::call_tool`].
    async fn call_in_other(&self, tool: &str, progress: Option<crate::ProgressSink>) -> Value {
        let request = Request {
            asks: Some(client(false)),
            progress,
            ..Request::call_tool(tool, Json::of_built("{}".to_owned()))
        };
        let (name, never) = (name(), CancellationToken::new());
        let answer = self.fleet.call(&name, &request, &never).await.unwrap();
        serde_json::from_str(answer.as_str()).unwrap()
    }

    fn count_notes(&self, word: &str) -> usize {
        let notes = self.notes().into_iter();
        notes.filter(|it| it.starts_with(word)).count()
    }

    async fn until_notes(&self, word: &str, count: usize) {
        while self.count_notes(word) < count {
            yield_now().await;
        }
    }

    async fn until_waiting(&self) {
        let is_free = |it: crate::ServerState| it.waiting_calls == 0;
        while self.fleet.quick_states().into_iter().all(is_free) {
            yield_now().await;
        }
    }

    fn open_gate(&self) {
        fs::write(format!("{}.gate", self.notes.path().display()), "").unwrap();
    }
}

#[tokio::test]
async fn a_call_that_waits_for_another_client_says_so_and_runs_in_a_second_process() {
    let scene = scene(true, "refuses").await;
    let (progress, heard) = heard();
    let beside = async {
        scene.until_notes("wait", 1).await;
        let calling = scene.call_in_other("any", Some(progress));
        let (answer, ()) = tokio::join!(calling, scene.until_waiting());
        scene.open_gate();
        answer
    };
    let (waited, answer) = tokio::join!(scene.call_tool("wait"), beside);
    assert_ne!(waited.unwrap()["pid"], answer["pid"]);
    let heard = heard.lock().clone();
    assert!(
        heard[0].contains("waits at any for the call of another client"),
        "{heard:?}"
    );
    assert_eq!(scene.fleet.states().len(), 2);
    // Both go on as one server.
    scene.restart(false).await.unwrap();
    assert_eq!(scene.fleet.states().len(), 1);
    scene.fleet.stop().await;
}

#[tokio::test]
async fn a_server_that_is_to_have_one_process_answers_one_client_after_the_other() {
    let scene = scene(false, "refuses").await;
    let beside = async {
        scene.until_notes("wait", 1).await;
        let until_waiting = async {
            scene.until_waiting().await;
            scene.open_gate();
        };
        tokio::join!(scene.call_in_other("any", None), until_waiting).0
    };
    let (waited, answer) = tokio::join!(scene.call_tool("wait"), beside);
    assert_eq!(waited.unwrap()["pid"], answer["pid"]);
    assert_eq!(scene.fleet.states().len(), 1);
    scene.fleet.stop().await;
}

#[tokio::test]
async fn a_call_goes_on_waiting_for_a_server_that_runs_only_once() {
    let scene = scene(true, "runs once").await;
    let starts = scene.count_notes("start");
    let beside = async {
        scene.until_notes("wait", 1).await;
        let until_tried = async {
            scene.until_notes("start", starts + 1).await;
            scene.open_gate();
        };
        tokio::join!(scene.call_in_other("any", None), until_tried).0
    };
    let (waited, answer) = tokio::join!(scene.call_tool("wait"), beside);
    assert_eq!(waited.unwrap()["pid"], answer["pid"]);
    let states = scene.fleet.states();
    assert!(
        states.iter().all(|it| it.state != RunState::Down),
        "{states:?}"
    );
    scene.fleet.stop().await;
}

#[tokio::test]
async fn a_server_that_may_run_only_once_from_now_on_starts_after_all_of_its_processes_ended() {
    let scene = scene(true, "refuses").await;
    let rest = async {
        scene.until_notes("wait", 2).await;
        let spec = ServerSpec {
            has_spares: false,
            ..scene.spec.clone()
        };
        assert!(!scene.fleet.apply(vec![spec]).is_empty());
        let mut after = pin!(scene.call_tool("any"));
        assert!((&mut after).now_or_never().is_none());
        scene.open_gate();
        after.await.unwrap()
    };
    let calls = (scene.call_tool("wait"), scene.call_in_other("wait", None));
    let (first, second, after) = tokio::join!(calls.0, calls.1, rest);
    let first = first.unwrap();
    assert_ne!(first["pid"], second["pid"]);
    let notes = scene.notes();
    let at = |note: String| notes.iter().position(|it| *it == note).unwrap();
    let started = at(format!("start {}", after["pid"]));
    for before in [first, second] {
        assert!(at(format!("end {}", before["pid"])) < started, "{notes:?}");
    }
    scene.fleet.stop().await;
}
