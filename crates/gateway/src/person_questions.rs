//! The questions to people that wait for an answer. A person may answer one on the web page, or with
//! `proxy review --pending`, in place of the client that was asked; the first answer counts.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use files::clock::now_ms;
use fleet::ClientAnswer;
use jsonrpc::Json;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::{sync::oneshot, time::timeout};
use tool::{Digest, ServerName};

/// A question that waits.
#[derive(Debug)]
pub struct PersonQuestion {
    /// Its number, unique in this process.
    pub id: u64,
    /// The server that asks; the built-in one for the approval of a call.
    pub server: ServerName,
    /// The name of the client that was asked.
    pub client: String,
    /// The time at which it was asked, in milliseconds since 1970.
    pub since_ms: u64,
    params: Json,
    answer: Mutex<Option<oneshot::Sender<ClientAnswer>>>,
    /// Names the call, if the answer may come after the call has ended.
    call: Option<Digest>,
    /// The time at which its call ended without an answer.
    left_at: Mutex<Option<Instant>>,
}

/// All questions that wait.
#[derive(Debug, Default)]
pub struct PersonQuestions {
    last: AtomicU64,
    open: Mutex<BTreeMap<u64, Arc<PersonQuestion>>>,
    /// Answers that came after their calls had ended, for the next call of the same kind.
    late: Mutex<HashMap<Digest, (ClientAnswer, Instant)>>,
    /// True if people reach the questions of this process.
    is_reachable: AtomicBool,
}

/// The time for which a question waits after its call has ended, and an answer for the next call.
pub(crate) const LATE_ANSWER_LIFE: Duration = Duration::from_mins(15);

/// Questions whose calls have ended. The oldest one is withdrawn for another.
const LEFT_MAX: usize = 1_000;

impl PersonQuestion {
    /// Returns the `params` of `elicitation/create`, a JSON object.
    pub fn params(&self) -> &str {
        self.params.as_str()
    }

    /// Returns true if its call has ended: an answer is for the next call with the same arguments.
    pub fn has_left(&self) -> bool {
        self.left_at.lock().is_some()
    }

    fn has_expired(&self) -> bool {
        let left_at = *self.left_at.lock();
        left_at.is_some_and(|it| it.elapsed() >= LATE_ANSWER_LIFE)
    }
}

impl PersonQuestions {
    /// Returns the questions, the oldest first.
    pub fn list(&self) -> Vec<Arc<PersonQuestion>> {
        let mut open = self.open.lock();
        open.retain(|_, it| !it.has_expired());
        open.values().cloned().collect()
    }

    /// Declares that people reach the questions of this process, by a command or on the page.
    pub fn set_reachable(&self) {
        self.is_reachable.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_reachable(&self) -> bool {
        self.is_reachable.load(Ordering::Relaxed)
    }

    /// Answers a question in place of its client: `action` is `accept`, `decline` or `cancel`. Returns
    /// false if it does not wait any more.
    pub fn answer(&self, id: u64, action: &str, content: Option<Map<String, Value>>) -> bool {
        let question = self.open.lock().get(&id).cloned();
        let Some(question) = question.filter(|it| !it.has_expired()) else {
            return false;
        };
        let mut answer = json!({ "action": action });
        if let Some(content) = content {
            answer["content"] = content.into();
        }
        let answer = ClientAnswer::result(&answer);
        let sender = question.answer.lock().take();
        let unsent = match sender.map(|sender| sender.send(answer)) {
            Some(Ok(())) => return true,
            Some(Err(unsent)) => unsent,
            None => return false,
        };
        let Some(call) = question.call.filter(|_| question.has_left()) else {
            return false;
        };
        self.open.lock().remove(&id);
        self.late.lock().insert(call, (unsent, Instant::now()));
        true
    }

    /// Waits for the client's answer, or for that of a person on the page. If a person is first, the
    /// future of the client's answer is dropped, which withdraws the question from the client.
    pub(crate) async fn race(
        &self,
        question: (&ServerName, String, Json),
        asking: impl Future<Output = ClientAnswer>,
    ) -> ClientAnswer {
        let (_open, answered) = self.begin(question, None);
        tokio::select! {
            biased;
            answer = asking => answer,
            Ok(answer) = answered => answer,
        }
    }

    /// Waits for a person, for a client that cannot ask its own. Without an answer in this time the
    /// question stays open: an answer within [`LATE_ANSWER_LIFE`] is that of the next request for the
    /// same call, which then returns it at once.
    pub(crate) async fn ask_outside(
        &self,
        question: (&ServerName, String, Json),
        call: Digest,
        wait: Duration,
    ) -> Option<ClientAnswer> {
        if let Some(answer) = self.take_late(call) {
            return Some(answer);
        }
        self.make_room(call);
        let (open, answered) = self.begin(question, Some(call));
        match timeout(wait, answered).await {
            Ok(Ok(answer)) => Some(answer),
            Ok(Err(_)) => None,
            Err(_) => {
                open.leave();
                None
            }
        }
    }

    fn take_late(&self, call: Digest) -> Option<ClientAnswer> {
        let mut late = self.late.lock();
        late.retain(|_, (_, at)| at.elapsed() < LATE_ANSWER_LIFE);
        late.remove(&call).map(|(answer, _)| answer)
    }

    /// Withdraws the question of an earlier request for the same call, and the oldest one if too many
    /// are left.
    fn make_room(&self, call: Digest) {
        let mut open = self.open.lock();
        open.retain(|_, it| !(it.has_left() && it.call == Some(call) || it.has_expired()));
        let mut left = open.values().filter(|it| it.has_left());
        let oldest = left.next().map(|it| it.id);
        if left.count() + 1 >= LEFT_MAX {
            oldest.and_then(|id| open.remove(&id));
        }
    }

    fn begin(
        &self,
        (server, client, params): (&ServerName, String, Json),
        call: Option<Digest>,
    ) -> (OpenEntry<'_>, oneshot::Receiver<ClientAnswer>) {
        let (sender, answered) = oneshot::channel();
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let question = PersonQuestion {
            id,
            server: server.clone(),
            client,
            since_ms: now_ms(),
            params,
            answer: Mutex::new(Some(sender)),
            call,
            left_at: Mutex::new(None),
        };
        self.open.lock().insert(id, Arc::new(question));
        (OpenEntry { id, list: self }, answered)
    }
}

/// One question in the list, until this is dropped.
struct OpenEntry<'a> {
    id: u64,
    list: &'a PersonQuestions,
}

impl OpenEntry<'_> {
    /// Keeps the question open although its call ends.
    fn leave(self) {
        if let Some(question) = self.list.open.lock().get(&self.id) {
            *question.left_at.lock() = Some(Instant::now());
        }
        std::mem::forget(self);
    }
}

impl Drop for OpenEntry<'_> {
    fn drop(&mut self) {
        self.list.open.lock().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    fn question() -> (ServerName, String, Json) {
        let server = "git".parse().expect("a name");
        (server, "any".to_owned(), Json::of_built("{}".to_owned()))
    }

    #[tokio::test]
    async fn the_first_answer_counts_and_a_question_is_answered_once() {
        let questions = PersonQuestions::default();
        let (server, client, params) = question();
        let race = questions.race((&server, client, params), pending());
        let answer = async {
            let id = questions.list()[0].id;
            assert!(questions.answer(id, "decline", None));
            assert!(!questions.answer(id, "accept", None));
        };
        let (answer, ()) = tokio::join!(race, answer);
        assert_eq!(answer, ClientAnswer::result(&json!({"action": "decline"})));
        assert!(questions.list().is_empty());
        let (server, client, params) = question();
        let by_client = ClientAnswer::refuse("no");
        let race = questions.race((&server, client, params), ready(by_client.clone()));
        assert_eq!(race.await, by_client);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_after_the_call_is_for_the_next_call_alone() {
        let questions = PersonQuestions::default();
        let ask = async |call: &str| {
            let (server, client, params) = question();
            let call = Digest::of_bytes(call.as_bytes());
            let wait = Duration::from_secs(50);
            questions
                .ask_outside((&server, client, params), call, wait)
                .await
        };
        assert_eq!(ask("a").await, None);
        let left = questions.list();
        assert!(left.len() == 1 && left[0].has_left());
        assert!(questions.answer(left[0].id, "accept", None));
        assert!(!questions.answer(left[0].id, "accept", None));
        assert!(questions.list().is_empty());
        assert_eq!(ask("b").await, None);
        let accepted = ClientAnswer::result(&json!({"action": "accept"}));
        assert_eq!(ask("a").await, Some(accepted));
        assert_eq!(ask("a").await, None);
        // The next request for a call takes the place of the one that has ended.
        assert_eq!(ask("a").await, None);
        assert_eq!(questions.list().len(), 2);
    }

    #[tokio::test]
    async fn a_call_that_is_taken_back_leaves_no_question() {
        let questions = PersonQuestions::default();
        let (server, client, params) = question();
        let call = Digest::of_bytes(b"a");
        let wait = Duration::from_mins(1);
        let mut asking = Box::pin(questions.ask_outside((&server, client, params), call, wait));
        assert!(futures::poll!(&mut asking).is_pending());
        assert_eq!(questions.list().len(), 1);
        drop(asking);
        assert!(questions.list().is_empty());
    }
}
