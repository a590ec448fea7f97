//! The state of a session that a relay must know so that it can go on with another daemon.

use std::collections::{BTreeMap, HashSet};

use bytes::Bytes;
use jsonrpc::{Fields, Message, answered_id, canonical_id, frame};
use mcp::meta::PROTOCOL_VERSION;
use memchr::memmem;
use serde_json::json;

/// The beginning of the session, and what was asked and not answered yet.
#[derive(Debug, Default)]
pub(super) struct Pending {
    initialize: Option<(String, Bytes)>,
    initialized: Option<Bytes>,
    /// The last `logging/setLevel`.
    level: Option<(String, Bytes)>,
    under_way: BTreeMap<String, Asked>,
    /// Requests that were sent once more although the client has its answer.
    repeated: HashSet<String>,
}

#[derive(Debug)]
enum Asked {
    /// It may have run, and is never sent again.
    Call { names_revision: bool },
    /// It changes nothing, and is sent again.
    Question(Bytes),
}

impl Pending {
    /// Takes note of what the client says.
    pub(super) fn note_said(&mut self, line: &Bytes) {
        let Some(message) = Message::parse(line) else {
            return;
        };
        let Some(method) = message.method.as_deref() else {
            return;
        };
        let Some(id) = message.id.and_then(|id| canonical_id(id.get())) else {
            match method {
                "notifications/initialized" => self.initialized = Some(line.clone()),
                "notifications/cancelled" => self.forget_cancelled(&message),
                _ => {}
            }
            return;
        };
        match method {
            "initialize" => self.initialize = Some((id.clone(), line.clone())),
            "logging/setLevel" => self.level = Some((id.clone(), line.clone())),
            _ => {}
        }
        let asked = if method == "tools/call" {
            let names_revision = memmem::find(line, PROTOCOL_VERSION.as_bytes()).is_some();
            Asked::Call { names_revision }
        } else {
            Asked::Question(line.clone())
        };
        self.under_way.insert(id, asked);
    }

    /// A call that was taken back is not answered.
    fn forget_cancelled(&mut self, message: &Message<'_>) {
        let id = message
            .params
            .and_then(|params| Fields::of(params.get())?.get("requestId"));
        if let Some(id) = id.and_then(|id| canonical_id(id.get())) {
            self.under_way.remove(&id);
        }
    }

    /// Takes note of a line of the daemon. Whether the client is to hear it.
    pub(super) fn note_heard(&mut self, line: &[u8]) -> bool {
        match answered_id(line).and_then(canonical_id) {
            Some(id) => {
                self.under_way.remove(&id);
                !self.repeated.remove(&id)
            }
            None => true,
        }
    }

    /// The answers to the calls that were under way when the daemon was lost.
    pub(super) fn take_lost_calls(&mut self) -> Vec<Bytes> {
        self.repeated.clear();
        let is_call = |asked: &Asked| matches!(asked, Asked::Call { .. });
        let lost = self.under_way.extract_if(.., |_, asked| is_call(asked));
        let lost = lost.map(|(id, asked)| answer(&id, &asked, LOST));
        lost.collect()
    }

    /// Whether the client waits for something that can be asked once more.
    pub(super) fn has_questions(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// The lines that another daemon must hear first, in order: how the session began, then the
    /// questions that are open.
    pub(super) fn replay(&mut self) -> Vec<Bytes> {
        let mut lines = Vec::new();
        let mut again = Vec::new();
        for (id, line) in [&self.initialize, &self.level].into_iter().flatten() {
            lines.push(line.clone());
            again.push(id.clone());
        }
        if let Some(line) = &self.initialized {
            lines.insert(1.min(lines.len()), line.clone());
        }
        for (id, asked) in &self.under_way {
            if let Asked::Question(line) = asked
                && !again.contains(id)
            {
                lines.push(line.clone());
            }
        }
        let is_answered = |id: &String| !self.under_way.contains_key(id);
        self.repeated = again.into_iter().filter(is_answered).collect();
        lines
    }

    /// Answers everything that is open with the reason why it cannot be asked.
    pub(super) fn refuse_all(&mut self, why: &str) -> Vec<Bytes> {
        let refused = std::mem::take(&mut self.under_way);
        let answers = refused
            .into_iter()
            .map(|(id, asked)| answer(&id, &asked, why));
        answers.collect()
    }
}

const LOST: &str = "error server_unavailable: the proxy's daemon ended while this call was under \
                    way, so it may have run. Look whether it did before you call again; the next \
                    message starts a new daemon.";

fn answer(id: &str, asked: &Asked, why: &str) -> Bytes {
    match asked {
        Asked::Call { names_revision } => call_answer(id, *names_revision, why),
        Asked::Question(_) => error_answer(id, why),
    }
}

/// A tool error, as a model reads it.
fn call_answer(id: &str, names_revision: bool, why: &str) -> Bytes {
    let mut result = json!({"content": [{"type": "text", "text": why}], "isError": true});
    if names_revision {
        result["resultType"] = json!("complete");
    }
    frame::result(id, [Bytes::from(result.to_string())])
        .concat()
        .into()
}

pub(super) fn error_answer(id: &str, why: &str) -> Bytes {
    frame::error(id, frame::INTERNAL_ERROR, why)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::Value;

    use super::Pending;

    fn pending(said: &[&'static str]) -> Pending {
        let mut pending = Pending::default();
        for line in said {
            pending.note_said(&Bytes::from_static(line.as_bytes()));
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
        assert!(session.note_heard(br#"{"jsonrpc":"2.0","id":0,"result":{}}"#));
        assert!(session.note_heard(br#"{"jsonrpc":"2.0","id":"l","result":{}}"#));
        assert!(session.take_lost_calls().is_empty() && session.has_questions());
        let replayed = session.replay();
        assert_eq!(texts(&replayed), [INITIALIZE, INITIALIZED, LEVEL, LIST]);
        assert!(!session.note_heard(br#"{"jsonrpc":"2.0","id":0,"result":{}}"#));
        assert!(!session.note_heard(br#"{"jsonrpc":"2.0","id":"l","result":{}}"#));
        assert!(session.note_heard(br#"{"jsonrpc":"2.0","id":7,"result":{}}"#));
        assert!(!session.has_questions());
    }

    #[test]
    fn an_initialize_that_was_not_answered_is_answered_by_the_next_daemon() {
        let mut session = pending(&[INITIALIZE]);
        assert_eq!(texts(&session.replay()), [INITIALIZE]);
        assert!(session.note_heard(br#"{"jsonrpc":"2.0","id":0,"result":{}}"#));
    }

    #[test]
    fn a_call_is_answered_and_never_repeated() {
        let cancel =
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}"#;
        let other = r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{}}"#;
        let mut session = pending(&[INITIALIZE, CALL, other, cancel]);
        let answers = session.take_lost_calls();
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
