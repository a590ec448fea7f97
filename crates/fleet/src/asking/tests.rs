use std::time::Duration;

use futures::FutureExt as _;
use serde_json::{Value, json};
use tokio::{
    sync::{Notify, mpsc, oneshot},
    time::Instant,
};

use super::*;
use crate::question::ClockStop;

/// A client that records its questions, and answers when the test says so.
struct FakeClient {
    session: u64,
    takes_rounds: bool,
    asked: mpsc::UnboundedSender<(ServerQuestion, oneshot::Sender<ClientAnswer>)>,
    told: Mutex<Vec<String>>,
    is_away: Notify,
    clocks_stopped: AtomicU64,
}

/// The session of a client that gets questions by `input_required`.
const ABSENT_MINDED: u64 = 9;

type QuestionReceiver = mpsc::UnboundedReceiver<(ServerQuestion, oneshot::Sender<ClientAnswer>)>;

#[expect(clippy::disallowed_methods, reason = "a test bounds what it sends")]
fn client(session: u64) -> (Arc<FakeClient>, QuestionReceiver) {
    let (asked, questions) = mpsc::unbounded_channel();
    let client = FakeClient {
        session,
        takes_rounds: session == ABSENT_MINDED,
        asked,
        told: Mutex::default(),
        is_away: Notify::new(),
        clocks_stopped: AtomicU64::new(0),
    };
    (Arc::new(client), questions)
}

impl Asks for Arc<FakeClient> {
    fn session(&self) -> u64 {
        self.session
    }

    fn client(&self) -> String {
        "tester".to_owned()
    }

    fn capabilities(&self) -> Json {
        Json::of_built("{}".to_owned())
    }

    fn until_away(&self) -> BoxFuture<'_, ()> {
        self.is_away.notified().boxed()
    }

    fn stop_clock(&self) -> ClockStop {
        self.clocks_stopped.fetch_add(1, Ordering::Relaxed);
        ClockStop::default()
    }

    fn takes_rounds(&self) -> bool {
        self.takes_rounds
    }

    fn ask(&self, question: ServerQuestion) -> BoxFuture<'_, ClientAnswer> {
        let (answer, answered) = oneshot::channel();
        self.asked.send((question, answer)).unwrap();
        async move { answered.await.unwrap() }.boxed()
    }

    fn tell(&self, _: &str, params: &str) {
        self.told.lock().push(params.to_owned());
    }

    fn without_call(&self) -> Arc<dyn Asks> {
        Arc::new(Self::clone(self))
    }
}

impl Default for Asking {
    fn default() -> Self {
        let name = "any".parse().unwrap();
        Self::new(&name, Arc::default(), Roots::default(), Arc::default())
    }
}

/// A connection, and the messages that the server receives.
struct AskingFixture {
    questions: Questions,
    heard: mpsc::Receiver<Value>,
}

impl AskingFixture {
    fn new() -> Self {
        let (sender, heard) = mpsc::channel(8);
        let send: AnswerSink = Arc::new(move |message| {
            let sender = sender.clone();
            let message = serde_json::from_slice(&message.concat()).unwrap();
            async move { sender.send(message).await.unwrap() }.boxed()
        });
        let questions = Questions::new(Arc::default(), send);
        Self { questions, heard }
    }

    /// Receives a message of the server during these calls.
    fn says(&self, message: &Value, calls: &[(&Arc<FakeClient>, &CancellationToken)]) -> bool {
        let line = Bytes::from(message.to_string());
        let message = Message::parse(&line).unwrap();
        self.questions.take(&line, &message, None, || {
            let asker = |(client, ended): &(&Arc<FakeClient>, &CancellationToken)| Asker {
                asks: Some(Arc::new(Arc::clone(client))),
                ended: (*ended).clone(),
            };
            calls.iter().map(asker).collect()
        })
    }

    async fn hears(&mut self) -> Value {
        self.heard.recv().await.unwrap()
    }

    async fn hears_refusal(&mut self, part: &str) {
        let answer = self.hears().await;
        assert_eq!(answer["error"]["code"], -32_601, "{answer}");
        let why = answer["error"]["message"].as_str().unwrap();
        assert!(why.contains(part), "{why}");
    }
}

fn question() -> Value {
    json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create",
        "params": {"message": "Sure?", "elicitationId": "e1"}})
}

#[tokio::test]
async fn a_question_goes_to_the_one_client_that_calls_and_its_answer_comes_back_as_it_is() {
    let mut scene = AskingFixture::new();
    let (client, mut asked) = client(1);
    let call = CancellationToken::new();
    assert!(scene.says(&question(), &[(&client, &call), (&client, &call)]));
    let (heard, answer) = asked.recv().await.unwrap();
    assert_eq!(heard.kind, QuestionKind::Elicitation);
    assert!(heard.params.as_str().contains("Sure?"));
    let result = Json::of_built(r#"{"action":"accept","content":{"n":1.0}}"#.to_owned());
    answer.send(ClientAnswer::Result(result)).unwrap();
    let answer = scene.hears().await;
    assert_eq!(answer["id"], "q");
    assert_eq!(answer["result"]["content"]["n"].to_string(), "1.0");
    assert!(scene.questions.open.is_empty());

    let complete = json!({"method": COMPLETE, "params": {"elicitationId": "e1"}});
    assert!(scene.says(&complete, &[]) && scene.says(&complete, &[]));
    assert_eq!(*client.told.lock(), [r#"{"elicitationId":"e1"}"#]);
}

#[tokio::test]
async fn a_question_that_is_nobodys_or_anybodys_is_refused() {
    let mut scene = AskingFixture::new();
    let ((first, mut of_first), (second, mut of_second)) = (client(1), client(2));
    let call = CancellationToken::new();
    scene.says(&question(), &[]);
    scene.hears_refusal("no call is under way").await;
    scene.says(&question(), &[(&first, &call), (&second, &call)]);
    scene.hears_refusal("calls of several clients").await;
    assert!(of_first.try_recv().is_err() && of_second.try_recv().is_err());
    let asking = &scene.questions.asking;
    let [first, second] = [&first, &second].map(|it| request_of(it, "ask"));
    let _turn = asking.take_turn(&first).await;
    // Nothing is marked by a question that was refused.
    assert!(asking.take_turn(&second).now_or_never().is_some());
}

/// Lets a client answer a question of a call of this tool.
async fn answer_question(scene: &mut AskingFixture, tool: &str, answer: ClientAnswer) {
    let (person, mut asked) = client(7);
    let asking = Arc::clone(&scene.questions.asking);
    let _turn = asking.take_turn(&request_of(&person, tool)).await;
    let under_way = CancellationToken::new();
    scene.says(&question(), &[(&person, &under_way)]);
    let (_, open) = asked.recv().await.unwrap();
    open.send(answer).unwrap();
    scene.hears().await;
}

fn accept() -> ClientAnswer {
    ClientAnswer::Result(Json::of_built(r#"{"action":"accept"}"#.to_owned()))
}

#[tokio::test]
async fn only_an_answered_question_marks_and_only_the_tool_that_asked() {
    let mut scene = AskingFixture::new();
    let asking = Arc::clone(&scene.questions.asking);
    answer_question(&mut scene, "ask", ClientAnswer::refuse("no")).await;
    assert!(asking.habits.list_asking().is_empty());
    let (other, _) = client(2);
    let other_call = request_of(&other, "echo");
    let _beside = asking.take_turn(&other_call).await;
    answer_question(&mut scene, "ask", accept()).await;
    assert_eq!(asking.habits.list_asking(), ["tools/call ask"]);
    assert_eq!(
        asking.changes.next().await.as_str(),
        "any",
        "the mark is kept"
    );
}

#[tokio::test]
async fn a_call_that_asked_keeps_others_out_until_its_end_since_it_may_ask_again() {
    let mut scene = AskingFixture::new();
    let asking = Arc::clone(&scene.questions.asking);
    let ((person, mut asked), (other, _)) = (client(1), client(2));
    let other_call = request_of(&other, "echo");
    let turn = asking.take_turn(&request_of(&person, "ask")).await;
    drop(asking.try_take_turn(&other_call).unwrap());
    scene.says(&question(), &[(&person, &CancellationToken::new())]);
    let (_, open) = asked.recv().await.unwrap();
    assert!(asking.try_take_turn(&other_call).is_none());
    open.send(accept()).unwrap();
    scene.hears().await;
    assert!(asking.try_take_turn(&other_call).is_none());
    drop(turn);
    assert!(asking.try_take_turn(&other_call).is_some());
}

/// Creates a call of a tool by a client.
fn request_of(client: &Arc<FakeClient>, tool: &str) -> Request {
    let asks: Arc<dyn Asks> = Arc::new(Arc::clone(client));
    Request {
        asks: Some(asks),
        ..Request::call_tool(tool, Json::of_built("{}".to_owned()))
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_of_any_client_keeps_others_out_for_a_while_only() {
    for session in [1, ABSENT_MINDED] {
        let mut scene = AskingFixture::new();
        let ((slow, mut asked), (other, _)) = (client(session), client(2));
        let under_way = CancellationToken::new();
        let asking = Arc::clone(&scene.questions.asking);
        asking.habits.note_question(&["tools/call ask".to_owned()]);
        let turn = asking.take_turn(&request_of(&slow, "ask")).await;
        scene.says(&question(), &[(&slow, &under_way)]);
        let (_, open) = asked.recv().await.unwrap();
        // The question stays open as long as no other client waits.
        sleep(QUESTION_UNDISTURBED * 10).await;
        assert!(!open.is_closed() && !asking.list_open()[0].holds_up_others);
        let waits = request_of(&other, "ask");
        let mut waiting = Box::pin(asking.take_turn(&waits));
        assert!((&mut waiting).now_or_never().is_none());
        let [open] = asking.list_open().try_into().unwrap();
        assert!(open.holds_up_others && open.client == "tester");
        assert_eq!(
            asking.explain_wait(Some(2)).to_string(),
            "waits for an answer that tester is asked for"
        );
        assert_eq!(asking.explain_wait(Some(session)), HeldUp::OtherClients);
        scene.hears_refusal("others wait").await;
        drop(turn);
        waiting.await;
        assert!(asking.list_open().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_of_a_client_that_is_away_is_taken_back_as_soon_as_others_wait() {
    let mut scene = AskingFixture::new();
    let ((gone, mut asked), (other, _)) = (client(1), client(2));
    let under_way = CancellationToken::new();
    let asking = Arc::clone(&scene.questions.asking);
    asking.habits.note_question(&["tools/call ask".to_owned()]);
    let turn = asking.take_turn(&request_of(&gone, "ask")).await;
    scene.says(&question(), &[(&gone, &under_way)]);
    let (_, open) = asked.recv().await.unwrap();
    gone.is_away.notify_one();
    let began = Instant::now();
    tokio::task::yield_now().await;
    assert!(!open.is_closed());
    let waits = request_of(&other, "ask");
    let mut waiting = Box::pin(asking.take_turn(&waits));
    assert!((&mut waiting).now_or_never().is_none());
    scene.hears_refusal("others wait").await;
    assert_eq!(began.elapsed(), Duration::ZERO);
    drop(turn);
    waiting.await;
}

#[tokio::test]
async fn a_client_may_call_while_it_is_asked_though_others_wait() {
    let scene = AskingFixture::new();
    let ((asked_one, mut asked), (other, _)) = (client(1), client(2));
    let under_way = CancellationToken::new();
    let asking = Arc::clone(&scene.questions.asking);
    asking.habits.note_question(&["tools/call ask".to_owned()]);
    let _turn = asking.take_turn(&request_of(&asked_one, "ask")).await;
    scene.says(&question(), &[(&asked_one, &under_way)]);
    let _open = asked.recv().await.unwrap();
    let waits = request_of(&other, "echo");
    let mut waiting = Box::pin(asking.take_turn(&waits));
    assert!((&mut waiting).now_or_never().is_none());
    let turn = asking
        .take_turn(&request_of(&asked_one, "echo"))
        .now_or_never();
    assert!(turn.is_some());
}

#[tokio::test]
async fn calls_of_a_tool_that_asks_nothing_wait_for_no_other_session() {
    let mut scene = AskingFixture::new();
    let ((first, _), (second, _)) = (client(1), client(2));
    let asking = Arc::clone(&scene.questions.asking);
    answer_question(&mut scene, "ask", accept()).await;
    let _held = asking.take_turn(&request_of(&first, "echo")).await;
    let second_call = request_of(&second, "echo");
    let _meanwhile = asking.take_turn(&second_call).now_or_never().unwrap();
    let asks = request_of(&second, "ask");
    let mut waiting = Box::pin(asking.take_turn(&asks));
    assert!((&mut waiting).now_or_never().is_none());
    assert_eq!(asking.count_waiting(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_clock_of_every_call_that_may_be_asking_stands() {
    let scene = AskingFixture::new();
    let (client, mut asked) = client(1);
    let calls = [CancellationToken::new(), CancellationToken::new()];
    scene.says(&question(), &[(&client, &calls[0]), (&client, &calls[1])]);
    let (_, answer) = asked.recv().await.unwrap();
    assert_eq!(client.clocks_stopped.load(Ordering::Relaxed), 2);
    // The call that caused the question has ended; the other call may be the one that asks.
    calls[0].cancel();
    tokio::task::yield_now().await;
    assert!(!answer.is_closed());
}

#[tokio::test]
async fn a_question_dies_with_its_call_and_with_the_servers_patience() {
    let mut scene = AskingFixture::new();
    let (client, mut asked) = client(1);
    let call = CancellationToken::new();
    scene.says(&question(), &[(&client, &call)]);
    let (_, mut answer) = asked.recv().await.unwrap();
    call.cancel();
    scene.hears_refusal("the call is over").await;
    answer.closed().await;

    let call = CancellationToken::new();
    scene.says(&question(), &[(&client, &call)]);
    let (_, mut answer) = asked.recv().await.unwrap();
    let cancel = json!({"method": "notifications/cancelled", "params": {"requestId": "q"}});
    assert!(scene.says(&cancel, &[]));
    answer.closed().await;
    assert!(
        !scene.says(&cancel, &[]),
        "the second cancellation matches no question"
    );
}

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_answers_ends() {
    let mut scene = AskingFixture::new();
    let (client, mut asked) = client(1);
    let call = CancellationToken::new();
    scene.says(&question(), &[(&client, &call)]);
    let _answer = asked.recv().await.unwrap();
    scene.hears_refusal("no answer within 60 min").await;
}

#[tokio::test]
async fn a_flood_of_questions_is_refused_past_its_bound() {
    let mut scene = AskingFixture::new();
    let (client, mut asked) = client(1);
    let call = CancellationToken::new();
    for id in 0..=QUESTIONS_MAX {
        let mut question = question();
        question["id"] = json!(id);
        scene.says(&question, &[(&client, &call)]);
    }
    scene.hears_refusal("more than 64 questions").await;
    for _ in 0..QUESTIONS_MAX {
        asked.recv().await.unwrap();
    }
    assert!(asked.try_recv().is_err());
}
