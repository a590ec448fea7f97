//! One call: its request, and the check that the response is its own.

use serde_json::{Value, json};

use super::{fault::Fault, random::Random, tally::Fate};

/// The timeout of a call of ours that hangs.
const HANG_LIMIT_MS: u64 = 500;
/// A result with this many repetitions of its number is cut.
const LARGE_REPEATS: usize = 5_000;
/// The number of calls in one `call_many`.
const MANY: u64 = 3;

/// A call with a number that the answer must contain.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SoakCall {
    pub(super) number: u64,
    pub(super) server: usize,
    pub(super) kind: CallKind,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum CallKind {
    /// A payload of this many bytes beside the number.
    Echo(usize),
    Slow,
    /// A result that is cut.
    Large,
    /// Reads on in the result of the call with this number.
    Read {
        handle: String,
        of: u64,
    },
    Search,
    Describe,
    Many,
    Crash,
    Hang,
    Garble,
}

/// The result of checking an answer.
#[derive(Debug, PartialEq)]
pub(super) struct CallCheck {
    pub(super) fate: Fate,
    pub(super) why: String,
    /// The handle of a result that was cut.
    pub(super) handle: Option<String>,
}

/// Prefixes of errors that a fault can cause.
const TOLD: [&str; 2] = ["error server_unavailable: ", "it could not be kept: "];

impl SoakCall {
    pub(super) fn draw(number: u64, servers: usize, random: &mut Random) -> Self {
        let kind = match random.below(100) {
            0..60 => CallKind::Echo(random.below(2_000)),
            60..75 => CallKind::Slow,
            75..80 => CallKind::Large,
            80..88 => CallKind::Search,
            88..94 => CallKind::Describe,
            _ => CallKind::Many,
        };
        Self {
            number,
            server: random.below(servers),
            kind,
        }
    }

    /// Changes this call to the one that causes the fault.
    pub(super) fn of_fault(&mut self, fault: Fault) {
        self.kind = match fault {
            Fault::CrashCall => CallKind::Crash,
            Fault::GarbleCall => CallKind::Garble,
            _ => CallKind::Hang,
        };
    }

    /// Returns the parameters of `tools/call`.
    pub(super) fn params(&self) -> Value {
        let at = |tool: &str| format!("s{}/{tool}", self.server);
        let ours = |tool: &str, arguments| json!({ "name": tool, "arguments": arguments });
        let tool = match &self.kind {
            CallKind::Search => return ours("search_tools", json!({ "query": "echo" })),
            CallKind::Describe => return ours("describe_tool", json!({ "name": at("echo") })),
            CallKind::Many => {
                let calls = (0..MANY).map(|part| {
                    json!({ "tool_name": at("echo"), "tool_input": { "n": self.part(part) } })
                });
                let calls: Vec<Value> = calls.collect();
                return execute("proxy/call_many", &json!({ "calls": calls }));
            }
            CallKind::Read { handle, .. } => {
                let input = json!({ "handle": handle, "offset": 0, "limit": 1 });
                return execute("proxy/read_result", &input);
            }
            CallKind::Echo(_) | CallKind::Large => "echo",
            CallKind::Slow => "slow",
            CallKind::Crash => "crash",
            CallKind::Garble => "garble",
            CallKind::Hang => "hang",
        };
        let mut params = execute(&at(tool), &self.input());
        if self.kind == CallKind::Hang {
            params["arguments"]["timeout_ms"] = json!(HANG_LIMIT_MS);
        }
        params
    }

    fn part(&self, part: u64) -> String {
        format!("{}.{part}", self.number)
    }

    /// Returns the input, which a server returns byte for byte.
    fn input(&self) -> Value {
        match self.kind {
            CallKind::Echo(bytes) => json!({ "n": self.number, "pad": "x".repeat(bytes) }),
            CallKind::Large => {
                let pad = format!("call {}; ", self.number).repeat(LARGE_REPEATS);
                json!({ "n": self.number, "pad": pad })
            }
            _ => json!({ "n": self.number }),
        }
    }

    /// Checks a response with the id of this call.
    pub(super) fn judge(&self, answer: &Value) -> CallCheck {
        let verdict = |fate, why: &str| CallCheck {
            fate,
            why: format!("{self:?}: {why}"),
            handle: None,
        };
        if let Some(error) = answer.get("error") {
            let why = error["message"].as_str().unwrap_or_default();
            let is_lost = error["code"] == -32_603 && why.contains("may have run")
                || why.contains("server_unavailable");
            let fate = if is_lost {
                Fate::Told
            } else {
                Fate::Unexplained
            };
            return verdict(fate, &error.to_string());
        }
        let text = text_of(&answer["result"]);
        if answer["result"]["isError"] == true {
            return verdict(self.fate_of_error(&text), &text);
        }
        if !self.is_own(&text) {
            return verdict(Fate::Anothers, &text);
        }
        CallCheck {
            fate: Fate::Right,
            why: String::new(),
            handle: (self.kind == CallKind::Large)
                .then(|| handle_in(&text))
                .flatten(),
        }
    }

    fn fate_of_error(&self, text: &str) -> Fate {
        let may_time_out = self.kind == CallKind::Hang && text.starts_with("error timeout: ");
        if may_time_out || is_told(text) {
            Fate::Told
        } else {
            Fate::Unexplained
        }
    }

    fn is_own(&self, text: &str) -> bool {
        match &self.kind {
            CallKind::Echo(_) | CallKind::Slow | CallKind::Garble => {
                let said = self.input().to_string();
                text == said
            }
            CallKind::Large => is_of_call(text, self.number),
            CallKind::Read { of, .. } => is_of_call(text, *of),
            CallKind::Search => text.contains("/echo("),
            CallKind::Describe => text.contains(&format!("s{}/echo", self.server)),
            // Each part may fail on its own.
            CallKind::Many => {
                (0..MANY).all(|part| text.contains(&self.part(part))) || is_told(text)
            }
            CallKind::Crash | CallKind::Hang => false,
        }
    }
}

fn execute(tool: &str, input: &Value) -> Value {
    json!({
        "name": "execute_dynamic_tool",
        "arguments": { "tool_name": tool, "tool_input": input }
    })
}

fn is_told(text: &str) -> bool {
    TOLD.iter().any(|why| text.contains(why))
}

/// Returns true if a part of a long result names this call and no other.
fn is_of_call(text: &str, number: u64) -> bool {
    let mut names = text.split("call ").skip(1).filter_map(|rest| {
        let (name, _) = rest.split_once(';')?;
        name.parse::<u64>().ok()
    });
    let first = names.next();
    first == Some(number) && names.all(|name| name == number)
}

fn text_of(result: &Value) -> String {
    let blocks = result["content"].as_array().map_or(&[][..], Vec::as_slice);
    let texts = blocks.iter().filter_map(|block| block["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}

/// Returns the handle in the footer of a cut result.
fn handle_in(text: &str) -> Option<String> {
    let (_, rest) = text.split_once(r#"{"handle":""#)?;
    Some(rest.split_once('"')?.0.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(kind: CallKind) -> SoakCall {
        SoakCall {
            number: 7,
            server: 2,
            kind,
        }
    }

    fn text(text: &str) -> Value {
        json!({ "result": { "content": [{ "type": "text", "text": text }] } })
    }

    fn error(said: &str) -> Value {
        let mut answer = text(said);
        answer["result"]["isError"] = json!(true);
        answer
    }

    #[track_caller]
    fn check(kind: CallKind, answer: &Value, fate: Fate) {
        let verdict = call(kind).judge(answer);
        assert_eq!(verdict.fate, fate, "{verdict:?}");
    }

    #[test]
    fn only_its_own_answer_is_right() {
        check(CallKind::Slow, &text(r#"{"n":7}"#), Fate::Right);
        check(CallKind::Slow, &text(r#"{"n":8}"#), Fate::Anothers);
        check(
            CallKind::Echo(2),
            &text(r#"{"n":7,"pad":"xx"}"#),
            Fate::Right,
        );
        check(
            CallKind::Echo(2),
            &text(r#"{"n":7,"pad":"x"}"#),
            Fate::Anothers,
        );
        check(CallKind::Large, &text("call 7; call 7; ca"), Fate::Right);
        check(CallKind::Large, &text("call 7; call 8; "), Fate::Anothers);
        check(CallKind::Many, &text("7.0 7.1 7.2"), Fate::Right);
        check(CallKind::Many, &text("7.0 7.1 8.2"), Fate::Anothers);
        check(CallKind::Hang, &text("done"), Fate::Anothers);
        let footer = r#"call 7; [cut: More: {"handle":"r1","part":2}]"#;
        let verdict = call(CallKind::Large).judge(&text(footer));
        assert_eq!(verdict.handle.as_deref(), Some("r1"));
    }

    #[test]
    fn an_error_must_say_what_a_fault_can_explain() {
        let down = "error server_unavailable: s2: it ended";
        check(CallKind::Slow, &error(down), Fate::Told);
        check(
            CallKind::Slow,
            &error("error internal: x"),
            Fate::Unexplained,
        );
        let late = "error timeout: no answer";
        check(CallKind::Hang, &error(late), Fate::Told);
        check(CallKind::Slow, &error(late), Fate::Unexplained);
        let lost = json!({ "error": { "code": -32_603, "message": "it may have run" } });
        check(CallKind::Slow, &lost, Fate::Told);
        let odd = json!({ "error": { "code": -32_603, "message": "x" } });
        check(CallKind::Slow, &odd, Fate::Unexplained);
    }
}
