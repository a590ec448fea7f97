//! The state of a session that a relay needs to continue with another daemon.

use std::collections::{BTreeMap, HashSet};

use bytes::Bytes;
use gateway::{LOST_CALL, answer_lost_call};
use jsonrpc::mcp::meta::PROTOCOL_VERSION;
use jsonrpc::{Fields, Message, answered_id, canonical_id, frame, text_of};
use memchr::memmem;
use serde_json::json;

/// The beginning of the session, and the requests that are not answered yet.
#[derive(Debug, Default)]
pub(super) struct Pending {
    initialize: Option<(String, Bytes)>,
    initialized: Option<Bytes>,
    /// The last `logging/setLevel`.
    level: Option<(String, Bytes)>,
    /// By the canonical form of its id, like all tables here.
    under_way: BTreeMap<String, OpenRequest>,
    /// Requests that were sent again although the client has the response.
    repeated: HashSet<String>,
    /// By URI, the request that subscribed to it.
    subscriptions: BTreeMap<String, (String, Bytes)>,
    /// The ids of the requests to the client, unchanged.
    questions: BTreeMap<String, String>,
}

#[derive(Debug)]
struct OpenRequest {
    /// The id as the client spelled it.
    id: String,
    kind: OpenKind,
}

#[derive(Debug)]
enum OpenKind {
    /// It may have run, and is never sent again.
    Call { names_revision: bool },
    /// It changes nothing, and is sent again.
    Repeatable { line: Bytes, resends: u32 },
}

/// The number of times a request is sent again to the next daemon. Without this limit, a request
/// that ends every daemon would start daemons for ever.
const RESENDS_MAX: u32 = 2;

impl Pending {
    pub(super) fn record_client_line(&mut self, line: &Bytes) {
        let Some(message) = Message::parse(line) else {
            return;
        };
        let Some(method) = message.method.as_deref() else {
            if let Some(id) = message.id.and_then(|id| canonical_id(id.get())) {
                self.questions.remove(&id);
            }
            return;
        };
        let spelled = message.id.map(serde_json::value::RawValue::get);
        let Some(id) = spelled.and_then(canonical_id) else {
            match method {
                "notifications/initialized" => self.initialized = Some(line.clone()),
                // A cancelled call is not answered.
                CANCELLED => {
                    if let Some(id) = cancelled_id(&message) {
                        self.under_way.remove(&id);
                    }
                }
                _ => {}
            }
            return;
        };
        match method {
            "initialize" => self.initialize = Some((id.clone(), line.clone())),
            "logging/setLevel" => self.level = Some((id.clone(), line.clone())),
            "resources/subscribe" | "resources/unsubscribe" => {
                self.record_subscription(&message, &id, line);
            }
            _ => {}
        }
        let kind = if method == "tools/call" {
            let names_revision = memmem::find(line, PROTOCOL_VERSION.as_bytes()).is_some();
            OpenKind::Call { names_revision }
        } else {
            OpenKind::Repeatable {
                line: line.clone(),
                resends: 0,
            }
        };
        let spelled = spelled.unwrap_or_default().to_owned();
        self.under_way.insert(id, OpenRequest { id: spelled, kind });
    }

    fn record_subscription(&mut self, message: &Message<'_>, id: &str, line: &Bytes) {
        let params = message.params.and_then(|params| Fields::of(params.get()));
        let Some(uri) = params.and_then(|it| text_of(it.get("uri")?)) else {
            return;
        };
        if message.method.as_deref() == Some("resources/unsubscribe") {
            self.subscriptions.remove(&*uri);
        } else if self.subscriptions.len() < SUBSCRIPTIONS_MAX {
            let asked = (id.to_owned(), line.clone());
            self.subscriptions.insert(uri.into_owned(), asked);
        }
    }

    /// Records a line of the daemon. Returns true if it is to be passed to the client.
    pub(super) fn record_daemon_line(&mut self, line: &[u8]) -> bool {
        match answered_id(line).and_then(canonical_id) {
            Some(id) => {
                self.under_way.remove(&id);
                !self.repeated.remove(&id)
            }
            None => {
                self.record_daemon_request(line);
                true
            }
        }
    }

    /// Records requests to the client, and their cancellations.
    fn record_daemon_request(&mut self, line: &[u8]) {
        let Some(message) = Message::parse(line) else {
            return;
        };
        if let Some(id) = message.id {
            let key = canonical_id(id.get());
            let key = key.filter(|_| self.questions.len() < QUESTIONS_MAX);
            if let Some(key) = key {
                self.questions.insert(key, id.get().to_owned());
            }
        } else if message.method.as_deref() == Some(CANCELLED)
            && let Some(id) = cancelled_id(&message)
        {
            self.questions.remove(&id);
        }
    }

    /// Cancels the requests that a lost daemon sent to the client.
    pub(super) fn cancel_daemon_requests(&mut self) -> Vec<Bytes> {
        let open = std::mem::take(&mut self.questions).into_values();
        let lines = open.map(|id| {
            let why = "the proxy's daemon ended before it received the response";
            frame::notification(
                CANCELLED,
                &format!(r#"{{"requestId":{id},"reason":"{why}"}}"#),
            )
        });
        lines.collect()
    }

    /// The notifications for a client whose resources another daemon watches: each resource may have
    /// changed meanwhile. The `_meta` distinguishes them from those of a server.
    pub(super) fn notify_resources(&self) -> Vec<Bytes> {
        let uris = self.subscriptions.keys();
        let lines = uris.map(|uri| {
            let params = json!({"uri": uri, "_meta": {MAY_HAVE_CHANGED: WHILE_AWAY}}).to_string();
            frame::notification("notifications/resources/updated", &params)
        });
        lines.collect()
    }

    /// The answers to the requests that were under way when the daemon was lost and are not sent
    /// again: calls, and those that were sent again too often.
    pub(super) fn answer_lost(&mut self) -> Vec<Bytes> {
        self.repeated.clear();
        let mut answers = Vec::new();
        let mut refused = Vec::new();
        self.under_way.retain(|id, asked| match &mut asked.kind {
            OpenKind::Call { .. } => {
                answers.push(answer(asked, LOST_CALL));
                false
            }
            OpenKind::Repeatable { resends, .. } if *resends < RESENDS_MAX => {
                *resends += 1;
                true
            }
            OpenKind::Repeatable { .. } => {
                answers.push(answer(asked, &explain_given_up()));
                refused.push(id.clone());
                false
            }
        });
        for id in refused {
            self.forget_refused(&id);
        }
        answers
    }

    /// A refused request is not repeated with the next daemon. The `initialize` stays: a
    /// session needs it.
    fn forget_refused(&mut self, id: &str) {
        self.level.take_if(|(of, _)| of == id);
        self.subscriptions.retain(|_, (of, _)| of != id);
    }

    /// Returns true if the client waits for the answer to a request that can be sent again.
    pub(super) fn has_open_requests(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// Returns the lines that another daemon must receive first, in order: the start of the session,
    /// then the open requests.
    pub(super) fn replay(&mut self) -> Vec<Bytes> {
        let mut lines = Vec::new();
        let mut again = Vec::new();
        let opening = [&self.initialize, &self.level].into_iter().flatten();
        for (id, line) in opening.chain(self.subscriptions.values()) {
            lines.push(line.clone());
            again.push(id.clone());
        }
        if let Some(line) = &self.initialized {
            lines.insert(1.min(lines.len()), line.clone());
        }
        for (id, asked) in &self.under_way {
            if let OpenKind::Repeatable { line, .. } = &asked.kind
                && !again.contains(id)
            {
                lines.push(line.clone());
            }
        }
        let is_answered = |id: &String| !self.under_way.contains_key(id);
        self.repeated = again.into_iter().filter(is_answered).collect();
        lines
    }

    /// Answers every open request with the reason why it cannot be sent.
    pub(super) fn refuse_all(&mut self, why: &str) -> Vec<Bytes> {
        let refused = std::mem::take(&mut self.under_way);
        refused.values().map(|asked| answer(asked, why)).collect()
    }
}

/// The key of `_meta` that says why a resource counts as changed.
const MAY_HAVE_CHANGED: &str = "proxy/may-have-changed";

const WHILE_AWAY: &str = "the proxy's daemon ended, and another one now watches the resource";

const CANCELLED: &str = "notifications/cancelled";

/// The maximum number of subscriptions that are renewed; a session has no more.
const SUBSCRIPTIONS_MAX: usize = 256;

/// The maximum number of requests to the client that are cancelled.
const QUESTIONS_MAX: usize = 1_024;

/// Returns the id of the request that a notification cancels.
fn cancelled_id(message: &Message<'_>) -> Option<String> {
    let params = Fields::of(message.params?.get())?;
    canonical_id(params.get("requestId")?.get())
}

fn explain_given_up() -> String {
    let times = RESENDS_MAX + 1;
    format!(
        "error server_unavailable: the proxy's daemon ended {times} times during this request, so \
        it is not sent again. `proxy logs` shows the reason"
    )
}

fn answer(asked: &OpenRequest, why: &str) -> Bytes {
    let OpenRequest { id, kind } = asked;
    match kind {
        OpenKind::Call { names_revision } => answer_lost_call(id, *names_revision, why),
        OpenKind::Repeatable { .. } => error_answer(id, why),
    }
}

pub(super) fn error_answer(id: &str, why: &str) -> Bytes {
    frame::error(id, frame::INTERNAL_ERROR, why)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::Value;

    use super::{MAY_HAVE_CHANGED, Pending, RESENDS_MAX};

    fn pending(said: &[&'static str]) -> Pending {
        let mut pending = Pending::default();
        for line in said {
            pending.record_client_line(&Bytes::from_static(line.as_bytes()));
        }
        pending
    }

    fn texts(lines: &[Bytes]) -> Vec<&str> {
        lines
            .iter()
            .map(|line| str::from_utf8(line).unwrap())
            .collect()
    }

    const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#;
    const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    const LEVEL: &str = r#"{"jsonrpc":"2.0","id":"l","method":"logging/setLevel","params":{}}"#;
    const LIST: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#;
    const CALL: &str = r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"x"}}"#;

    #[test]
    fn a_session_is_begun_again_and_its_answers_are_not_told_twice() {
        let mut session = pending(&[INITIALIZE, INITIALIZED, LEVEL, LIST]);
        assert!(session.record_daemon_line(br#"{"jsonrpc":"2.0","id":0,"result":{}}"#));
        assert!(session.record_daemon_line(br#"{"jsonrpc":"2.0","id":"l","result":{}}"#));
        assert!(session.answer_lost().is_empty() && session.has_open_requests());
        let replayed = session.replay();
        assert_eq!(texts(&replayed), [INITIALIZE, INITIALIZED, LEVEL, LIST]);
        assert!(!session.record_daemon_line(br#"{"jsonrpc":"2.0","id":0,"result":{}}"#));
        assert!(!session.record_daemon_line(br#"{"jsonrpc":"2.0","id":"l","result":{}}"#));
        assert!(session.record_daemon_line(br#"{"jsonrpc":"2.0","id":7,"result":{}}"#));
        assert!(!session.has_open_requests());
    }

    #[test]
    fn an_id_is_known_in_every_spelling_and_answered_as_the_client_spelled_it() {
        for (asked, answered) in [
            ("1.0", "1"),
            ("1", "1e0"),
            ("-0", "0"),
            (r#""\u0061""#, r#""a""#),
        ] {
            let call = format!(r#"{{"jsonrpc":"2.0","id":{asked},"method":"tools/call"}}"#);
            let mut session = Pending::default();
            session.record_client_line(&Bytes::from(call.clone()));
            let answer = format!(r#"{{"jsonrpc":"2.0","id":{answered},"result":{{}}}}"#);
            assert!(session.record_daemon_line(answer.as_bytes()));
            assert!(!session.has_open_requests(), "{asked}");
            session.record_client_line(&Bytes::from(call.clone()));
            let lost = session.answer_lost();
            assert!(
                texts(&lost)[0].contains(&format!(r#""id":{asked},"#)),
                "{lost:?}"
            );
            session.record_client_line(&Bytes::from(call));
            let cancel = format!(
                r#"{{"method":"notifications/cancelled","params":{{"requestId":{answered}}}}}"#
            );
            session.record_client_line(&Bytes::from(cancel));
            assert!(!session.has_open_requests(), "{asked}");
        }
    }

    #[test]
    fn a_request_under_which_every_daemon_ends_is_refused_in_the_end() {
        const SUBSCRIBE: &str =
            r#"{"jsonrpc":"2.0","id":5,"method":"resources/subscribe","params":{"uri":"a:1"}}"#;
        let mut session = pending(&[INITIALIZE, INITIALIZED]);
        assert!(session.record_daemon_line(br#"{"jsonrpc":"2.0","id":0,"result":{}}"#));
        for line in [SUBSCRIBE, LIST] {
            session.record_client_line(&Bytes::from_static(line.as_bytes()));
        }
        for _ in 0..RESENDS_MAX {
            assert!(session.answer_lost().is_empty() && session.has_open_requests());
            let replayed = session.replay();
            assert_eq!(texts(&replayed), [INITIALIZE, INITIALIZED, SUBSCRIBE, LIST]);
        }
        let refused = session.answer_lost();
        assert_eq!(refused.len(), 2);
        for answer in texts(&refused) {
            assert!(answer.contains("ended 3 times"), "{answer}");
        }
        assert!(!session.has_open_requests());
        assert_eq!(texts(&session.replay()), [INITIALIZE, INITIALIZED]);
        // The same request of the client is counted again.
        session.record_client_line(&Bytes::from_static(LIST.as_bytes()));
        assert!(session.answer_lost().is_empty() && session.has_open_requests());
    }

    #[test]
    fn subscriptions_are_made_anew_and_their_resources_told_as_changed() {
        const FIRST: &str =
            r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"a:1"}}"#;
        const SECOND: &str =
            r#"{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"a:2"}}"#;
        const END: &str =
            r#"{"jsonrpc":"2.0","id":3,"method":"resources/unsubscribe","params":{"uri":"a:1"}}"#;
        let mut session = pending(&[INITIALIZE, INITIALIZED, FIRST, SECOND, END]);
        for id in 0..4 {
            let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
            assert!(session.record_daemon_line(answer.as_bytes()));
        }
        assert_eq!(texts(&session.replay()), [INITIALIZE, INITIALIZED, SECOND]);
        assert!(!session.record_daemon_line(br#"{"jsonrpc":"2.0","id":2,"result":{}}"#));
        let told = session.notify_resources();
        let [told] = &texts(&told)[..] else {
            panic!("{told:?}");
        };
        assert!(
            told.contains("resources/updated")
                && told.contains("a:2")
                && told.contains(MAY_HAVE_CHANGED),
            "{told}"
        );
    }

    #[test]
    fn a_question_that_nobody_waits_for_is_taken_back_once() {
        let mut session = pending(&[INITIALIZE]);
        for id in ["\"q-1\"", "\"q-2\"", "\"q-3\""] {
            let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"elicitation/create"}}"#);
            assert!(session.record_daemon_line(line.as_bytes()));
        }
        session.record_client_line(&Bytes::from_static(
            br#"{"jsonrpc":"2.0","id":"q-1","result":{}}"#,
        ));
        let cancelled =
            br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q-2"}}"#;
        assert!(session.record_daemon_line(cancelled));
        let taken_back = session.cancel_daemon_requests();
        let [line] = &texts(&taken_back)[..] else {
            panic!("{taken_back:?}");
        };
        assert!(line.contains(r#""requestId":"q-3""#), "{line}");
        assert!(session.cancel_daemon_requests().is_empty());
    }

    #[test]
    fn an_initialize_that_was_not_answered_is_answered_by_the_next_daemon() {
        let mut session = pending(&[INITIALIZE]);
        assert_eq!(texts(&session.replay()), [INITIALIZE]);
        assert!(session.record_daemon_line(br#"{"jsonrpc":"2.0","id":0,"result":{}}"#));
    }

    #[test]
    fn a_call_is_answered_and_never_repeated() {
        let cancel =
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}"#;
        let other = r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{}}"#;
        let mut session = pending(&[INITIALIZE, CALL, other, cancel]);
        let answers = session.answer_lost();
        let [answer] = &texts(&answers)[..] else {
            panic!("{answers:?}");
        };
        let answer: Value = serde_json::from_str(answer).unwrap();
        assert_eq!(answer["id"], 8);
        assert_eq!(answer["result"]["isError"], true);
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("may have run"), "{text}");
        assert_eq!(texts(&session.replay()), [INITIALIZE]);
    }
}
