//! The questions to people that wait for an answer. A person may answer one on the web page in place of the
//! client that was asked; the first answer counts.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use files::clock::now_ms;
use fleet::ClientAnswer;
use jsonrpc::Json;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use tool::ServerName;

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
}

/// All questions that wait.
#[derive(Debug, Default)]
pub struct PersonQuestions {
    last: AtomicU64,
    open: Mutex<BTreeMap<u64, Arc<PersonQuestion>>>,
}

impl PersonQuestion {
    /// Returns the `params` of `elicitation/create`, a JSON object.
    pub fn params(&self) -> &str {
        self.params.as_str()
    }
}

impl PersonQuestions {
    /// Returns the questions, the oldest first.
    pub fn list(&self) -> Vec<Arc<PersonQuestion>> {
        self.open.lock().values().cloned().collect()
    }

    /// Answers a question in place of its client: `action` is `accept`, `decline` or `cancel`. Returns
    /// false if it does not wait any more.
    pub fn answer(&self, id: u64, action: &str, content: Option<Map<String, Value>>) -> bool {
        let question = self.open.lock().get(&id).cloned();
        let Some(sender) = question.and_then(|it| it.answer.lock().take()) else {
            return false;
        };
        let mut answer = json!({ "action": action });
        if let Some(content) = content {
            answer["content"] = content.into();
        }
        sender.send(ClientAnswer::result(&answer)).is_ok()
    }

    /// Waits for the client's answer, or for that of a person on the page. If a person is first, the
    /// future of the client's answer is dropped, which withdraws the question from the client.
    pub(crate) async fn race(
        &self,
        (server, client, params): (&ServerName, String, Json),
        asking: impl Future<Output = ClientAnswer>,
    ) -> ClientAnswer {
        let (sender, answered) = oneshot::channel();
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let question = PersonQuestion {
            id,
            server: server.clone(),
            client,
            since_ms: now_ms(),
            params,
            answer: Mutex::new(Some(sender)),
        };
        self.open.lock().insert(id, Arc::new(question));
        let _open = OpenEntry { id, list: self };
        tokio::select! {
            biased;
            answer = asking => answer,
            Ok(answer) = answered => answer,
        }
    }
}

/// One question in the list, until this is dropped.
struct OpenEntry<'a> {
    id: u64,
    list: &'a PersonQuestions,
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
}
