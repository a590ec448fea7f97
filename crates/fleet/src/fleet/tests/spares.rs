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

#[tokio::test]
async fn the_process_with_a_handshake_that_may_run_only_once_starts_after_its_spares_ended() {
    let asks = |spec: &mut ServerSpec| spec.asking_calls = vec!["tools/call wait".to_owned()];
    let scene = FleetFixture::with(asks, "takes").await;
    scene.call(false).await;
    // A caller without a client uses the process that runs.
    scene.until_running(&[OLD]).await;
    let (cancel, name) = (CancellationToken::new(), name());
    let hang = Request::call_tool("hang", Json::of_built("{}".to_owned()));
    let rest = async {
        scene.until_notes("hang", 1).await;
        let spec = ServerSpec {
            has_spares: false,
            ..scene.spec.clone()
        };
        assert!(!scene.fleet.apply(vec![spec]).is_empty());
        scene.open_gate();
        let mut after = pin!(scene.call_in_other("any", None));
        let early = tokio::time::timeout(Duration::from_millis(500), &mut after).await;
        assert!(
            early.is_err(),
            "the spare process still runs: {:?}",
            scene.notes()
        );
        cancel.cancel();
        after.await
    };
    let calls = async {
        let beside = async {
            scene.until_notes("wait", 1).await;
            scene.fleet.call(&name, &hang, &cancel).await
        };
        tokio::join!(scene.call_in_other("wait", None), beside)
    };
    let ((before, cancelled), after) = tokio::join!(calls, rest);
    assert!(
        matches!(cancelled, Err(CallError::Cancelled)),
        "{cancelled:?}"
    );
    assert_eq!(
        (&before["era"], &after["era"]),
        (&"old".into(), &"old".into())
    );
    scene.fleet.stop().await;
}

#[tokio::test]
async fn the_processes_for_callers_include_spares() {
    let notes = tempfile::NamedTempFile::new().unwrap();
    let mut spec = spec(notes.path(), "refuses");
    spec.asking_calls = vec!["tools/call wait".to_owned()];
    spec.callers_max = std::num::NonZeroUsize::new(2);
    if let Launch::Child { args, .. } = &mut spec.launch {
        args.push(Template::parse("${caller:subject}").unwrap());
    }
    let fleet = Fleet::new(vec![spec.clone()], Surroundings::default());
    let scene = FleetFixture { fleet, notes, spec };
    let call = async |caller: &str, session: bool, tool: &str| {
        let subject = (HttpCaller::SUBJECT.to_owned(), caller.to_owned());
        let caller = HttpCaller {
            name: caller.into(),
            values: [subject].into(),
            origin: "http://127.0.0.1:1".into(),
        };
        let request = Request {
            asks: Some(client(session)),
            client: Some(ClientId {
                connection: None,
                name: "client".into(),
                folder: None,
                caller: Some(Arc::new(caller)),
            }),
            ..Request::call_tool(tool, Json::of_built("{}".to_owned()))
        };
        scene
            .fleet
            .call(&name(), &request, &CancellationToken::new())
            .await
    };
    for session in [false, true] {
        call("ann", session, "any").await.unwrap();
    }
    let beside = async {
        scene.until_notes("wait", 2).await;
        let refused = call("bob", true, "any").await.unwrap_err().to_string();
        assert!(
            refused.contains("all 2 processes for callers are in use"),
            "{refused}"
        );
        assert_eq!(scene.running().len(), 2);
        scene.open_gate();
    };
    let calls = (call("ann", true, "wait"), call("ann", false, "wait"));
    let (first, second, ()) = tokio::join!(calls.0, calls.1, beside);
    assert_ne!(first.unwrap().as_str(), second.unwrap().as_str());
    call("bob", true, "any").await.unwrap();
    scene.fleet.stop().await;
}
