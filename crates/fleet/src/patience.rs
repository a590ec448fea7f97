//! The timeout of a call, and how progress and questions extend it.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt as _, future::BoxFuture};
use jsonrpc::Json;
use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use crate::{
    Request, ServerSpec,
    question::{Asks, ClientAnswer, ClockStop, ServerQuestion},
};

/// The limits of waiting for a call.
pub(crate) struct Patience {
    timeout: Duration,
    /// The hard limit, if progress extends the timeout.
    timeout_max: Option<Duration>,
    pub(crate) clock: Arc<Clock>,
}

/// The clock of one call. It is paused while the client is asked a question.
pub(crate) struct Clock {
    time: Mutex<Time>,
    moved: Notify,
}

/// The times of a call, moved forward by the time for which its clock was stopped.
struct Time {
    began: Instant,
    /// The last progress.
    heard: Instant,
    /// The number of open questions, and since when there are any.
    questions: usize,
    standing_since: Instant,
}

impl Patience {
    pub(crate) fn new(spec: &ServerSpec, request: &Request) -> Self {
        let began = Instant::now();
        let time = Time {
            began,
            heard: began,
            questions: 0,
            standing_since: began,
        };
        Self {
            timeout: request.timeout.unwrap_or(spec.timeout),
            timeout_max: spec.timeout_max.filter(|_| !request.timeout_is_final),
            clock: Arc::new(Clock {
                time: Mutex::new(time),
                moved: Notify::new(),
            }),
        }
    }

    /// Returns the request with a watch on its progress, if progress extends the limit, and on its
    /// questions.
    pub(crate) fn watch(&self, request: &Request) -> Request {
        let mut request = request.clone();
        if self.timeout_max.is_some() {
            let clock = Arc::clone(&self.clock);
            let client = request.progress.take();
            request.progress = Some(Arc::new(move |params| {
                clock.hear();
                if let Some(client) = &client {
                    client(params);
                }
            }));
        }
        request.asks = request.asks.map(|client| {
            let clock = Arc::clone(&self.clock);
            Arc::new(TimedClient { client, clock }) as Arc<dyn Asks>
        });
        request
    }

    /// Returns the limit that was reached.
    pub(crate) async fn wait_for_end(&self) -> Duration {
        loop {
            let moved = self.clock.moved.notified();
            let Some(until) = self.end() else {
                moved.await;
                continue;
            };
            if until <= Instant::now() {
                let began = self.clock.time.lock().began;
                return until.saturating_duration_since(began);
            }
            tokio::select! {
                () = sleep_until(until) => {}
                () = moved => {}
            }
        }
    }

    /// Returns the current end of the limit; `None` while the clock is stopped.
    fn end(&self) -> Option<Instant> {
        let time = self.clock.time.lock();
        if time.questions > 0 {
            return None;
        }
        let longest = self.timeout_max.unwrap_or(self.timeout).max(self.timeout);
        Some((time.heard + self.timeout).min(time.began + longest))
    }
}

impl Clock {
    fn hear(&self) {
        self.time.lock().heard = Instant::now();
    }

    /// Stops the clock until the returned value is dropped.
    pub(crate) fn halt(self: &Arc<Self>) -> Halt {
        let mut time = self.time.lock();
        if time.questions == 0 {
            time.standing_since = Instant::now();
        }
        time.questions += 1;
        drop(time);
        self.moved.notify_one();
        Halt(Arc::clone(self))
    }
}

pub(crate) struct Halt(Arc<Clock>);

impl Drop for Halt {
    fn drop(&mut self) {
        let mut time = self.0.time.lock();
        time.questions -= 1;
        if time.questions == 0 {
            let (now, since) = (Instant::now(), time.standing_since);
            let unheard_since = since.max(time.heard);
            time.heard += now - unheard_since;
            time.began += now - since;
        }
        drop(time);
        self.0.moved.notify_one();
    }
}

/// A client whose questions stop the clock of its call.
struct TimedClient {
    client: Arc<dyn Asks>,
    clock: Arc<Clock>,
}

impl Asks for TimedClient {
    fn session(&self) -> u64 {
        self.client.session()
    }

    fn client(&self) -> String {
        self.client.client()
    }

    fn capabilities(&self) -> Json {
        self.client.capabilities()
    }

    fn takes_rounds(&self) -> bool {
        self.client.takes_rounds()
    }

    fn until_away(&self) -> BoxFuture<'_, ()> {
        self.client.until_away()
    }

    fn stop_clock(&self) -> ClockStop {
        self.client.stop_clock().and(self.clock.halt())
    }

    fn in_session(&self) -> Option<Arc<dyn Asks>> {
        self.client.in_session()
    }

    fn ask(&self, question: ServerQuestion) -> BoxFuture<'_, ClientAnswer> {
        async move {
            let _halt = self.clock.halt();
            self.client.ask(question).await
        }
        .boxed()
    }

    fn tell(&self, method: &str, params: &str) {
        self.client.tell(method, params);
    }

    fn without_call(&self) -> Arc<dyn Asks> {
        self.client.without_call()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;
    use tokio::{
        sync::oneshot,
        time::{advance, sleep},
    };

    use super::*;
    use crate::{Launch, QuestionKind, Template};

    /// It answers when the test says so.
    struct Person(Mutex<Option<oneshot::Receiver<()>>>);

    impl Asks for Person {
        fn session(&self) -> u64 {
            0
        }

        fn capabilities(&self) -> Json {
            Json::of_built("{}".to_owned())
        }

        fn takes_rounds(&self) -> bool {
            false
        }

        fn ask(&self, _: ServerQuestion) -> BoxFuture<'_, ClientAnswer> {
            let answered = self.0.lock().take().expect("it is asked once");
            async move {
                let _ = answered.await;
                ClientAnswer::refuse("no")
            }
            .boxed()
        }

        fn tell(&self, _: &str, _: &str) {}

        fn without_call(&self) -> Arc<dyn Asks> {
            unreachable!("nobody wants it")
        }
    }

    fn spec() -> ServerSpec {
        let launch = Launch::Child {
            command: Template::literal("x"),
            args: Vec::new(),
            env: Vec::new(),
            cwd: None,
        };
        ServerSpec::new("any".parse().expect("a name"), launch)
    }

    /// Returns how long a call is awaited that reports progress each second, and its limit then.
    async fn wait_with_progress(max: Option<u64>, timeout_is_final: bool) -> (Duration, Duration) {
        let spec = ServerSpec {
            timeout: Duration::from_secs(3),
            timeout_max: max.map(Duration::from_secs),
            ..spec()
        };
        let (began, progress) = (Instant::now(), Arc::new(|_: &RawValue| {}));
        let request = Request {
            timeout_is_final,
            progress: Some(progress),
            ..Request::call_tool("long", Json::of_built("{}".to_owned()))
        };
        let patience = Patience::new(&spec, &request);
        let progress = patience.watch(&request).progress.expect("it is passed on");
        let telling = async {
            loop {
                sleep(Duration::from_secs(1)).await;
                progress(RawValue::NULL);
            }
        };
        tokio::select! {
            limit = patience.wait_for_end() => (limit, began.elapsed()),
            () = telling => unreachable!("it tells for ever"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn progress_extends_a_call_up_to_the_hard_limit_where_there_is_one() {
        let [usual, hard] = [3, 10].map(Duration::from_secs);
        assert_eq!(wait_with_progress(Some(10), false).await, (hard, hard));
        assert_eq!(wait_with_progress(None, false).await, (usual, usual));
        assert_eq!(wait_with_progress(Some(10), true).await, (usual, usual));
    }

    #[tokio::test(start_paused = true)]
    async fn the_clock_stands_while_a_person_is_asked() {
        let spec = spec();
        let (answer, answered) = oneshot::channel();
        let json = |text: &str| Json::of_built(text.to_owned());
        let request = Request {
            asks: Some(Arc::new(Person(Mutex::new(Some(answered))))),
            timeout: Some(Duration::from_secs(10)),
            timeout_is_final: true,
            ..Request::call_tool("ask", json("{}"))
        };
        let patience = Arc::new(Patience::new(&spec, &request));
        let asks = patience.watch(&request).asks.expect("it is passed on");
        let waiting = tokio::spawn({
            let patience = Arc::clone(&patience);
            async move { patience.wait_for_end().await }
        });
        advance(Duration::from_secs(9)).await;
        let question = ServerQuestion {
            kind: QuestionKind::Elicitation,
            params: json("{}"),
        };
        let asking = tokio::spawn(async move { asks.ask(question).await });
        tokio::task::yield_now().await;
        advance(Duration::from_hours(1)).await;
        assert!(!waiting.is_finished());
        answer.send(()).expect("it waits");
        asking.await.expect("it ends");
        let answered_at = Instant::now();
        assert_eq!(waiting.await.expect("it ends"), Duration::from_secs(10));
        assert_eq!(answered_at.elapsed(), Duration::from_secs(1));
    }
}
