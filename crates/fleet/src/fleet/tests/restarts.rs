//! Restarts, and the calls that run or wait meanwhile.

use std::num::NonZeroUsize;

use super::*;

/// The time within which a server notes a call, also on a slow machine.
const NOTED_WITHIN: Duration = Duration::from_mins(1);

impl FleetFixture {
    /// Calls a tool of the server by its name.
    pub(super) async fn call_tool(&self, tool: &str) -> Result<Value, CallError> {
        let request = Request {
            asks: Some(client(true)),
            ..Request::call_tool(tool, Json::of_built("{}".to_owned()))
        };
        let (name, never) = (name(), CancellationToken::new());
        let answer = self.fleet.call(&name, &request, &never).await?;
        Ok(serde_json::from_str(answer.as_str()).unwrap())
    }

    async fn until_noted(&self, word: &str) {
        let noted = async {
            while !self.notes().iter().any(|note| note.starts_with(word)) {
                yield_now().await;
            }
        };
        let outcome = tokio::time::timeout(NOTED_WITHIN, noted).await;
        outcome.unwrap_or_else(|_| panic!("the server has noted {word}: {:?}", self.notes()));
    }

    pub(super) async fn restart(&self, waits: bool) -> Result<Duration, CallError> {
        self.fleet.restart(&name(), waits).await
    }

    /// Runs `call` until the server has noted the word, and `then` beside the rest of it.
    async fn during<T, U>(
        &self,
        call: impl Future<Output = T>,
        word: &str,
        then: impl Future<Output = U>,
    ) -> (T, U) {
        let then = async {
            self.until_noted(word).await;
            then.await
        };
        tokio::join!(call, then)
    }
}

#[track_caller]
fn check_ended(answer: Result<Value, CallError>) {
    match answer {
        Err(CallError::Unavailable { failure, ran, .. }) => {
            assert!(failure.is_restart && ran == Ran::Maybe, "{failure}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_restart_ends_calls_that_hang_and_calls_that_wait_go_to_the_new_process() {
    // A safe call is not repeated either: it may have been the reason for the restart.
    let one_place = |spec: &mut ServerSpec| {
        spec.calls_max = NonZeroUsize::new(1);
        spec.retries_safe_calls = true;
    };
    let scene = FleetFixture::with(one_place, "takes").await;
    let before = scene.call_tool("any").await.unwrap();
    let rest = async {
        let mut waiting = std::pin::pin!(scene.call_tool("any"));
        assert!((&mut waiting).now_or_never().is_none());
        tokio::join!(scene.restart(false), waiting)
    };
    let (hung, (restarted, waited)) = scene.during(scene.call_tool("hang"), "hang", rest).await;
    check_ended(hung);
    restarted.unwrap();
    assert_ne!(waited.unwrap()["pid"], before["pid"]);
    assert_eq!(scene.running(), [NEW]);
    scene.fleet.stop().await;
}

#[tokio::test]
async fn a_restart_ends_calls_for_which_an_earlier_restart_waits() {
    let scene = FleetFixture::surveyed("takes").await;
    let rest = async {
        // The person gives up the first one.
        assert!(scene.restart(true).now_or_never().is_none());
        scene.restart(false).await
    };
    let (hung, restarted) = scene.during(scene.call_tool("hang"), "hang", rest).await;
    check_ended(hung);
    restarted.unwrap();
    assert_eq!(scene.running(), [NEW]);
    scene.fleet.stop().await;
}

#[tokio::test]
async fn a_restart_that_waits_lets_calls_finish() {
    let scene = FleetFixture::surveyed("takes").await;
    let rest = async {
        let mut restart = std::pin::pin!(scene.restart(true));
        assert!((&mut restart).now_or_never().is_none());
        fs::write(format!("{}.gate", scene.notes.path().display()), "").unwrap();
        restart.await.unwrap();
    };
    let (waited, ()) = scene.during(scene.call_tool("wait"), "wait", rest).await;
    let after = scene.call_tool("any").await.unwrap();
    assert_ne!(waited.unwrap()["pid"], after["pid"]);
    scene.fleet.stop().await;
}

#[tokio::test]
async fn a_restart_frees_a_server_that_hangs_in_its_start() {
    let notes = tempfile::NamedTempFile::new().unwrap();
    let spec = ServerSpec {
        start_timeout: Duration::from_mins(10),
        ..spec(notes.path(), "hangs once")
    };
    let fleet = Fleet::new(vec![spec.clone()], Surroundings::default());
    let scene = FleetFixture { fleet, notes, spec };
    let (first, restarted) = scene
        .during(scene.call_tool("any"), "start", scene.restart(false))
        .await;
    first.unwrap();
    restarted.unwrap();
    scene.fleet.stop().await;
}

#[tokio::test]
async fn two_restarts_at_once_both_return_when_the_server_is_ready() {
    let scene = FleetFixture::surveyed("takes").await;
    let (one, other) = tokio::join!(scene.restart(false), scene.restart(false));
    one.unwrap();
    other.unwrap();
    scene.fleet.stop().await;
}

#[tokio::test]
async fn a_restart_returns_why_the_server_did_not_start() {
    let notes = tempfile::NamedTempFile::new().unwrap();
    let literal = |text: &str| Template::parse(text).unwrap();
    let launch = Launch::Child {
        command: literal("sh"),
        args: ["-c", "exit 3"].map(literal).into(),
        env: Vec::new(),
        cwd: None,
    };
    let spec = ServerSpec::new(name(), launch);
    let fleet = Fleet::new(vec![spec.clone()], Surroundings::default());
    let scene = FleetFixture { fleet, notes, spec };
    for _ in 0..2 {
        // A server that rests is started at once as well.
        let why = scene.restart(false).await.unwrap_err().to_string();
        assert!(why.contains("code 3"), "{why}");
    }
    let unknown = "none".parse().unwrap();
    let refused = scene.fleet.restart(&unknown, false).await;
    assert!(matches!(refused, Err(CallError::UnknownServer(_))));
    scene.fleet.stop().await;
}

#[tokio::test]
async fn no_call_starts_at_a_server_that_was_removed_though_it_still_runs_calls() {
    let one_place = |spec: &mut ServerSpec| spec.calls_max = NonZeroUsize::new(1);
    let scene = FleetFixture::with(one_place, "takes").await;
    let rest = async {
        let mut waiting = std::pin::pin!(scene.call_tool("any"));
        assert!((&mut waiting).now_or_never().is_none());
        scene.fleet.apply(Vec::new());
        assert!(matches!(waiting.await, Err(CallError::UnknownServer(_))));
        fs::write(format!("{}.gate", scene.notes.path().display()), "").unwrap();
    };
    let (waited, ()) = scene.during(scene.call_tool("wait"), "wait", rest).await;
    waited.unwrap();
    scene.fleet.stop().await;
}

/// Changes the servers immediately before a call is sent, and says if the rules allow the call.
struct ChangeAtStart {
    fleet: std::sync::Weak<FleetFixture>,
    is_removed: bool,
    refusal: Option<&'static str>,
}

impl crate::StartCheck for ChangeAtStart {
    fn check(&self) -> BoxFuture<'_, Result<(), crate::Refusal>> {
        if self.is_removed
            && let Some(scene) = self.fleet.upgrade()
        {
            scene.fleet.apply(Vec::new());
        }
        let checked = self.refusal.map_or(Ok(()), |why| Err(why.into()));
        std::future::ready(checked).boxed()
    }
}

#[tokio::test]
async fn a_call_that_has_its_place_and_a_server_starts_only_if_both_are_still_allowed() {
    for refusal in [Some("denied by a new rule"), None] {
        let scene = Arc::new(FleetFixture::surveyed("takes").await);
        let check = ChangeAtStart {
            fleet: Arc::downgrade(&scene),
            is_removed: refusal.is_none(),
            refusal,
        };
        let (asks, check) = (client(true), Arc::new(check));
        let subscriber = Subscriber {
            client: None,
            asks: Some(Arc::clone(&asks)),
            start_check: Some(check.clone()),
            sink: Arc::new(|_: &str| {}),
        };
        let request = Request {
            asks: Some(asks),
            start_check: Some(check),
            ..Request::call_tool("hang", Json::of_built("{}".to_owned()))
        };
        let (name, never) = (name(), CancellationToken::new());
        let watched = scene.fleet.watch(&name, "notes://one", subscriber).await;
        let called = scene.fleet.call(&name, &request, &never).await;
        for ended in [watched.map(drop).unwrap_err(), called.unwrap_err()] {
            match (&ended, refusal) {
                (CallError::Refused(why), Some(refusal)) => assert_eq!(why.to_string(), refusal),
                (CallError::UnknownServer(_), None) => {}
                _ => panic!("{ended:?}"),
            }
        }
        scene.fleet.stop().await;
        let notes = scene.notes();
        assert!(
            !notes.iter().any(|note| note.starts_with("hang")),
            "{notes:?}"
        );
    }
}
