use futures::FutureExt as _;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::*;

/// A client that notes what it is asked, and answers when the test says so.
struct Client {
    session: u64,
    takes_rounds: bool,
    asked: mpsc::UnboundedSender<(Question, oneshot::Sender<Answer>)>,
    told: Mutex<Vec<String>>,
}

/// The session of a client that is asked by the answer to its call.
const ABSENT_MINDED: u64 = 9;

type Asked = mpsc::UnboundedReceiver<(Question, oneshot::Sender<Answer>)>;

#[expect(clippy::disallowed_methods, reason = "a test bounds what it sends")]
fn client(session: u64) -> (Arc<Client>, Asked) {
    let (asked, questions) = mpsc::unbounded_channel();
    let client = Client {
        session,
        takes_rounds: session == ABSENT_MINDED,
        asked,
        told: Mutex::default(),
    };
    (Arc::new(client), questions)
}

impl Asks for Arc<Client> {
    fn session(&self) -> u64 {
        self.session
    }

    fn capabilities(&self) -> Json {
        Json::of_built("{}".to_owned())
    }

    fn takes_rounds(&self) -> bool {
        self.takes_rounds
    }

    fn ask(&self, question: Question) -> BoxFuture<'_, Answer> {
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
        Self::new(&name, Arc::default(), Roots::default(), false)
    }
}

/// A connection, and what the server hears.
struct Scene {
    questions: Questions,
    heard: mpsc::Receiver<Value>,
}

impl Scene {
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

    /// The server says something while these calls are under way.
    fn says(&self, message: &Value, calls: &[(&Arc<Client>, &CancellationToken)]) -> bool {
        let line = Bytes::from(message.to_string());
        let message = Message::parse(&line).unwrap();
        self.questions.take(&line, &message, None, || {
            let asker = |(client, ended): &(&Arc<Client>, &CancellationToken)| Asker {
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
    let mut scene = Scene::new();
    let (client, mut asked) = client(1);
    let call = CancellationToken::new();
    assert!(scene.says(&question(), &[(&client, &call), (&client, &call)]));
    let (heard, answer) = asked.recv().await.unwrap();
    assert_eq!(heard.kind, QuestionKind::Elicitation);
    assert!(heard.params.as_str().contains("Sure?"));
    let result = Json::of_built(r#"{"action":"accept","content":{"n":1.0}}"#.to_owned());
    answer.send(Answer::Result(result)).unwrap();
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
    let mut scene = Scene::new();
    let ((first, mut of_first), (second, mut of_second)) = (client(1), client(2));
    let call = CancellationToken::new();
    scene.says(&question(), &[]);
    scene.hears_refusal("no call is under way").await;
    scene.says(&question(), &[(&first, &call), (&second, &call)]);
    scene.hears_refusal("calls of several clients").await;
    assert!(of_first.try_recv().is_err() && of_second.try_recv().is_err());
    let asking = &scene.questions.asking;
    assert_eq!(
        asking.changes.next().await.as_str(),
        "any",
        "it is remembered"
    );
    let [first, second] = [first, second].map(|it| Arc::new(it) as Arc<dyn Asks>);
    let _turn = asking.take_turn(Some(&first)).await;
    // From here on sessions take turns.
    assert!(asking.take_turn(Some(&second)).now_or_never().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_may_not_come_back_keeps_others_out_for_a_while_only() {
    let mut scene = Scene::new();
    let (absent, mut asked) = client(ABSENT_MINDED);
    let call = CancellationToken::new();
    let asking = Arc::clone(&scene.questions.asking);
    let caller: Arc<dyn Asks> = Arc::new(Arc::clone(&absent));
    let turn = asking.take_turn(Some(&caller)).await;
    scene.says(&question(), &[(&absent, &call)]);
    let (_, open) = asked.recv().await.unwrap();
    // Nobody is in the way where nobody waits.
    sleep(QUESTION_UNDISTURBED * 10).await;
    assert!(!open.is_closed());
    let other: Arc<dyn Asks> = Arc::new(client(2).0);
    let mut waiting = Box::pin(asking.take_turn(Some(&other)));
    assert!((&mut waiting).now_or_never().is_none());
    scene.hears_refusal("has not come back").await;
    drop(turn);
    waiting.await;
}

#[tokio::test]
async fn a_question_dies_with_its_call_and_with_the_servers_patience() {
    let mut scene = Scene::new();
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
    assert!(!scene.says(&cancel, &[]), "of anything else it is not ours");
}

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_answers_ends() {
    let mut scene = Scene::new();
    let (client, mut asked) = client(1);
    let call = CancellationToken::new();
    scene.says(&question(), &[(&client, &call)]);
    let _answer = asked.recv().await.unwrap();
    scene.hears_refusal("no answer within 60 min").await;
}

#[tokio::test]
async fn a_flood_of_questions_is_refused_past_its_bound() {
    let mut scene = Scene::new();
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
