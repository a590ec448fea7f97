//! The open questions of one session, as requests to its client.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use fleet::{ClientAnswer, QuestionKind, ServerQuestion};
use futures::{
    FutureExt as _, StreamExt as _,
    future::{join_all, pending},
    stream::FuturesUnordered,
};
use jsonrpc::{Fields, Json, Message, canonical_id, frame, quote};
use parking_lot::Mutex;
use tokio::{
    sync::{mpsc, oneshot},
    time::{sleep, timeout},
};
use tracing::debug;

use super::capabilities::Capabilities;
use crate::{
    clients::ConnectedClient,
    elicitation::parked_calls::{RoundQuestion, RoundQuestions},
    out::{Out, ResponseSender},
    person_questions::PersonQuestions,
};

pub(super) const GONE: &str = "the client is gone, or takes no requests";

/// A client over HTTP that reads nothing for so long counts as away: a client that resumes a broken
/// stream is back within a second or two (http-server tells it to retry after half a second).
const AWAY_AFTER: Duration = Duration::from_secs(3);

/// The open questions of one session.
#[derive(Debug)]
pub(crate) struct SessionQuestions {
    client: Arc<ConnectedClient>,
    /// The destination of messages that belong to no request.
    home: Out,
    /// The capabilities that the client announced when the session began.
    pub(super) capabilities: Mutex<Arc<Capabilities>>,
    /// The prefix of every id: a response to a question of an earlier process matches none of ours.
    prefix: String,
    next: AtomicU64,
    /// By id, as JSON text.
    open: Mutex<HashMap<String, oneshot::Sender<ClientAnswer>>>,
    /// The outputs to the client of the calls in progress, the newest last.
    calls: Mutex<Vec<(u64, Out)>>,
    /// The senders to a client that is asked in the responses to its calls, the newest last.
    rounds: Mutex<Vec<mpsc::Sender<RoundQuestions>>>,
}

impl SessionQuestions {
    pub(crate) fn new(client: &Arc<ConnectedClient>, home: Out) -> Arc<Self> {
        let mut random = [0; 8];
        // Without randomness a late response could match another question.
        let _ = getrandom::fill(&mut random);
        Arc::new(Self {
            client: Arc::clone(client),
            home,
            capabilities: Mutex::default(),
            prefix: format!("proxy-{:016x}", u64::from_ne_bytes(random)),
            next: AtomicU64::new(0),
            open: Mutex::default(),
            calls: Mutex::default(),
            rounds: Mutex::default(),
        })
    }

    /// Tells sessions apart.
    pub(super) fn session(&self) -> u64 {
        self.client.number
    }

    /// The questions to all clients that wait.
    pub(super) fn people(&self) -> &PersonQuestions {
        &self.client.questions
    }

    /// The client's name, for people who wait for its answer.
    pub(super) fn client_name(&self) -> String {
        let name = self.client.info().map(|it| it.name.to_string());
        name.unwrap_or_else(|| "a client without a name".to_owned())
    }

    /// Returns true if the client announced in `initialize` that it shows apps.
    pub(crate) fn shows_apps(&self) -> bool {
        self.capabilities.lock().shows_apps()
    }

    /// Reads the capabilities that the client announces in `initialize`.
    pub(crate) fn know_client(&self, message: &Message<'_>) {
        if message.method.as_deref() == Some("initialize")
            && let Some(announced) = read_announced(message)
        {
            *self.capabilities.lock() = Arc::new(announced);
        }
    }

    /// Restores the capabilities of a client that has reconnected.
    pub(crate) fn recall(&self, letters: &str) {
        *self.capabilities.lock() = Arc::new(Capabilities::of_letters(letters));
    }

    /// Delivers the client's response to a question; a response that no caller waits for is dropped.
    pub(crate) fn take_answer(&self, line: &Bytes, message: &Message<'_>) {
        let id = message.id.and_then(|id| canonical_id(id.get()));
        let Some(answer) = id.and_then(|id| self.open.lock().remove(&id)) else {
            debug!("a response of the client matches no question");
            return;
        };
        let _ = answer.send(match (message.result, message.error) {
            (_, Some(error)) => ClientAnswer::Error(Json::part_of(line, error)),
            (Some(result), None) => ClientAnswer::Result(Json::part_of(line, result)),
            (None, None) => {
                ClientAnswer::refuse("the client's answer has neither a result nor an error")
            }
        });
    }

    /// Registers a call in progress, until the returned guard is dropped.
    pub(crate) fn begin_call(self: &Arc<Self>, out: &Out) -> impl Drop + use<> {
        let call = self.next.fetch_add(1, Ordering::Relaxed);
        self.calls.lock().push((call, out.clone()));
        if let Out::Router(router) = &self.home {
            router.note_request();
        }
        CallUnderWay {
            questions: Arc::clone(self),
            call,
        }
    }

    /// Registers a call whose response can carry questions to the client.
    pub(super) fn add_rounds(&self, rounds: &mpsc::Sender<RoundQuestions>) {
        let mut all = self.rounds.lock();
        all.retain(|rounds| !rounds.is_closed());
        all.push(rounds.clone());
    }

    /// Asks in the response to any call that is still in progress: a question that belongs to no
    /// known call outlives the call that it was first sent with.
    pub(super) async fn ask_in_rounds(&self, question: ServerQuestion) -> ClientAnswer {
        loop {
            let (told, answered) = RoundQuestion::new(None, question.clone());
            let sent = {
                let rounds = self.rounds.lock();
                let mut open = rounds.iter().rev().filter(|rounds| !rounds.is_closed());
                open.next().map(|rounds| rounds.try_send(vec![told]))
            };
            if !matches!(sent, Some(Ok(()))) {
                return ClientAnswer::refuse(GONE);
            }
            if let Ok(answer) = answered.await {
                return answer;
            }
        }
    }

    /// The output to a client for a question that names no call.
    pub(super) fn home_output(&self) -> Option<Out> {
        match &self.home {
            Out::Router(router) => {
                let stream = router.stream().map(Out::Reply);
                stream.or_else(|| self.calls.lock().last().map(|(_, out)| out.clone()))
            }
            other => Some(other.clone()),
        }
    }

    /// Sends a question to the client, and waits for its response, which may arrive on any stream.
    /// `out` is the output to try first.
    pub(super) async fn ask(
        self: &Arc<Self>,
        out: &Out,
        kind: QuestionKind,
        params: Bytes,
    ) -> ClientAnswer {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let id = quote(&format!("{}-{number}", self.prefix));
        let (answer, answered) = oneshot::channel();
        let key = canonical_id(&id).unwrap_or_else(|| id.clone());
        self.open.lock().insert(key.clone(), answer);
        let request = frame::request(&id, kind.method(), [params]);
        let open = OpenQuestion {
            questions: Arc::clone(self),
            key,
            id,
            out: Mutex::new(out.clone()),
        };
        tokio::select! {
            biased;
            answer = answered => answer.unwrap_or_else(|_| ClientAnswer::refuse(GONE)),
            () = self.deliver(&request, &open) => ClientAnswer::refuse(GONE),
        }
    }

    /// Sends a question, and resends it with the same id if the stream that it was sent on breaks.
    /// Returns when the client is gone, or cannot be asked.
    async fn deliver(&self, request: &[Bytes], open: &OpenQuestion) {
        let first = open.out.lock().clone();
        if let Out::Line(_) = first {
            if first.ask(request.to_vec()).await.is_ok() {
                first.gone().await;
            }
            return;
        }
        let mut found = self.find_stream(&first);
        while let Some(stream) = found {
            let way = Out::Reply(Arc::clone(&stream));
            *open.out.lock() = way.clone();
            if way.ask(request.to_vec()).await.is_ok() {
                stream.closed().await;
                if stream.is_read_to_its_end() {
                    // The call on whose stream the question was sent has ended; the client has the
                    // question.
                    return self.until_gone().await;
                }
            }
            let next = timeout(AWAY_AFTER, self.next_stream(&first));
            found = next.await.ok();
        }
    }

    /// The stream for a question: this one, else one that the client keeps open for messages that
    /// belong to no request, else that of any call. A stream that is being read is preferred.
    fn find_stream(&self, first: &Out) -> Option<Arc<ResponseSender>> {
        let first = match first {
            Out::Reply(stream) => Some(Arc::clone(stream)),
            _ => None,
        };
        let mut streams: Vec<_> = first.into_iter().chain(self.streams()).collect();
        streams.retain(|stream| stream.takes_questions());
        let is_read = streams.iter().position(|stream| stream.is_read());
        streams.into_iter().nth(is_read.unwrap_or_default())
    }

    async fn next_stream(&self, first: &Out) -> Arc<ResponseSender> {
        loop {
            let came = self.next_came();
            if let Some(stream) = self.find_stream(first) {
                return stream;
            }
            came.await;
        }
    }

    /// Every open response of the session, those that belong to no request first, the newest before the
    /// others.
    fn streams(&self) -> Vec<Arc<ResponseSender>> {
        let mut streams = match &self.home {
            Out::Router(router) => router.open_streams(),
            _ => Vec::new(),
        };
        let calls = self.calls.lock();
        streams.extend(calls.iter().rev().filter_map(|(_, out)| match out {
            Out::Reply(stream) if !stream.is_closed() => Some(Arc::clone(stream)),
            _ => None,
        }));
        streams
    }

    /// Waits for the next stream or call of the client; never returns for a client with a single
    /// stream of lines.
    fn next_came(&self) -> impl Future<Output = ()> {
        match &self.home {
            Out::Router(router) => router.next().left_future(),
            _ => pending().right_future(),
        }
    }

    /// Returns when the client reads no response of the session, and will resume none.
    async fn until_gone(&self) {
        loop {
            let open = self.streams();
            if open.is_empty() {
                return;
            }
            join_all(open.iter().map(|stream| stream.closed())).await;
        }
    }

    /// Returns when the client reads no response of the session for a while, though it may resume
    /// one. Never returns for a client that is not asked over HTTP.
    pub(super) async fn until_away(&self) {
        if !matches!(self.home, Out::Router(_)) {
            return pending().await;
        }
        loop {
            let came = self.next_came();
            let streams = self.streams();
            let changes = streams.iter().map(|stream| stream.read_changes());
            let mut changes: FuturesUnordered<_> = changes.collect();
            let is_here = streams.iter().any(|stream| stream.is_read());
            tokio::select! {
                () = sleep(AWAY_AFTER), if !is_here => return,
                () = came => {}
                Some(()) = changes.next() => {}
            }
        }
    }
}

/// Reads the capabilities for questions that a client announces in an `initialize`.
pub(crate) fn read_announced(message: &Message<'_>) -> Option<Capabilities> {
    let params = message.params.and_then(|it| Fields::of(it.get()))?;
    let announced = params.get("capabilities")?.get().to_owned();
    jsonrpc::json(announced).ok().map(Capabilities::read)
}

struct CallUnderWay {
    questions: Arc<SessionQuestions>,
    call: u64,
}

impl Drop for CallUnderWay {
    fn drop(&mut self) {
        let mut calls = self.questions.calls.lock();
        calls.retain(|(call, _)| *call != self.call);
    }
}

/// An open question; dropped before its response, it is cancelled.
struct OpenQuestion {
    questions: Arc<SessionQuestions>,
    key: String,
    id: String,
    /// The output on which it was sent last.
    out: Mutex<Out>,
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        if self.questions.open.lock().remove(&self.key).is_some() {
            let why = "the answer is no longer needed";
            let params = format!(r#"{{"requestId":{},"reason":"{why}"}}"#, self.id);
            let cancelled = frame::notification("notifications/cancelled", &params);
            let out = self.out.lock().clone();
            let way = match self.questions.find_stream(&out) {
                Some(stream) => Out::Reply(stream),
                None => out,
            };
            way.offer(vec![cancelled]);
        }
    }
}

#[cfg(test)]
mod tests {
    use fleet::Asks as _;
    use tokio::{task::JoinHandle, time::Instant};

    use super::*;
    use crate::{
        clients::ConnectedClients,
        clients::Connection,
        elicitation::CallAsker,
        elicitation::parked_calls::round_questions,
        out::{ResponseStream, ServerEvent, StreamRouter, response_stream, single_response},
    };

    /// A session over HTTP, and the stream that it may have open.
    fn session() -> (Arc<SessionQuestions>, Arc<StreamRouter>) {
        let client = ConnectedClients::default().add(Connection::default());
        let router = Arc::new(StreamRouter::default());
        let questions = SessionQuestions::new(&client, Out::Router(Arc::clone(&router)));
        (questions, router)
    }

    fn ask(questions: &Arc<SessionQuestions>, out: &Out) -> JoinHandle<ClientAnswer> {
        let (questions, out) = (Arc::clone(questions), out.clone());
        let params = Bytes::from_static(b"{}");
        tokio::spawn(async move { questions.ask(&out, QuestionKind::Elicitation, params).await })
    }

    /// The question that comes on a stream, with its id.
    async fn question_on(stream: &mut ResponseStream) -> (Vec<u8>, String) {
        let Some(ServerEvent::Question(parts)) = stream.next().await else {
            panic!("a question comes");
        };
        let line = parts.concat();
        let id = Message::parse(&line).and_then(|message| Some(message.id?.get().to_owned()));
        (line.clone(), id.expect("it has an id"))
    }

    fn answer(questions: &SessionQuestions, id: &str) {
        let line = Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
        questions.take_answer(&line, &Message::parse(&line).expect("it is a message"));
    }

    async fn end_call(responses: Arc<ResponseSender>, mut stream: ResponseStream) {
        let line = vec![Bytes::from_static(b"{}\n")];
        let _ = Out::Reply(responses).answer(line).await;
        assert!(matches!(stream.next().await, Some(ServerEvent::Answer(_))));
    }

    fn result() -> ClientAnswer {
        ClientAnswer::Result(Json::of_built("{}".to_owned()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_outlives_the_call_on_whose_stream_it_was_asked() {
        let (questions, _router) = session();
        let ((first, mut stream), (second, _other)) = (response_stream(), response_stream());
        let [first, second] = [first, second].map(Out::Reply);
        let under_way = questions.begin_call(&first);
        let _second = questions.begin_call(&second);
        let asking = ask(&questions, &first);
        let (_, id) = question_on(&mut stream).await;
        let Out::Reply(responses) = first else {
            unreachable!("it was made as one");
        };
        end_call(responses, stream).await;
        drop(under_way);
        sleep(AWAY_AFTER * 100).await;
        assert!(!asking.is_finished());
        answer(&questions, &id);
        assert_eq!(asking.await.expect("it ends"), result());
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_whose_stream_broke_off_is_asked_again_with_the_same_id() {
        let (questions, router) = session();
        let (home, mut stream) = response_stream();
        router.attach(home);
        let (call, mut of_call) = response_stream();
        let call = Out::Reply(call);
        let _call = questions.begin_call(&call);
        let home = questions.home_output().expect("there is a way");
        let asking = ask(&questions, &home);
        let (line, id) = question_on(&mut stream).await;
        drop(stream);
        assert_eq!(question_on(&mut of_call).await.0, line);
        answer(&questions, &id);
        assert_eq!(asking.await.expect("it ends"), result());
        // An answer that comes twice is dropped.
        answer(&questions, &id);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_any_more_is_gone_and_one_that_cannot_be_asked_refuses() {
        let (questions, _router) = session();
        let (call, mut stream) = response_stream();
        let out = Out::Reply(call);
        let _call = questions.begin_call(&out);
        let asking = ask(&questions, &out);
        question_on(&mut stream).await;
        drop(stream);
        assert_eq!(asking.await.expect("it ends"), ClientAnswer::refuse(GONE));

        let (single, _stream) = single_response();
        let single = Out::Reply(single);
        let _call = questions.begin_call(&single);
        let began = Instant::now();
        let refused = ask(&questions, &single).await.expect("it ends");
        assert_eq!(
            (refused, began.elapsed()),
            (ClientAnswer::refuse(GONE), Duration::ZERO)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_is_away_once_it_reads_no_stream_for_a_while() {
        let (questions, router) = session();
        let (call, stream) = response_stream();
        let _call = questions.begin_call(&Out::Reply(call));
        let began = Instant::now();
        let away = questions.until_away();
        let comes_back = async {
            stream.set_read(false);
            sleep(AWAY_AFTER / 2).await;
            // It takes the stream up again, and later opens another.
            stream.set_read(true);
            sleep(AWAY_AFTER * 10).await;
            let (home, of_home) = response_stream();
            router.attach(home);
            drop(stream);
            sleep(AWAY_AFTER * 10).await;
            drop(of_home);
        };
        tokio::join!(away, comes_back);
        assert_eq!(
            began.elapsed(),
            AWAY_AFTER / 2 + AWAY_AFTER * 20 + AWAY_AFTER
        );
    }

    #[tokio::test]
    async fn a_question_put_to_a_call_that_ends_goes_with_another_call_of_its_session() {
        let (questions, _router) = session();
        let can = Json::of_built(r#"{"elicitation":{}}"#.to_owned());
        let [(first, of_first), (second, mut of_second)] = [round_questions(), round_questions()];
        let asker = CallAsker::of_request(&questions, can.clone(), first);
        let _second = CallAsker::of_request(&questions, can, second);
        let asker = asker.for_server(&"any".parse().expect("a name"));
        let question = ServerQuestion {
            kind: QuestionKind::Elicitation,
            params: Json::of_built("{}".to_owned()),
        };
        let asking = tokio::spawn(async move { asker.ask(question).await });
        drop(of_first);
        let mut round = of_second.recv().await.expect("it is asked");
        let told = round.pop().expect("there is a question");
        told.answer.send(result()).expect("it is waited for");
        assert_eq!(asking.await.expect("it ends"), result());
    }
}
