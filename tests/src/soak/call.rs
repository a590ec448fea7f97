//! One call: what is asked, and whether the answer is its own.

use serde_json::{Value, json};

use super::{fault::Fault, random::Random, tally::Fate};

/// The limit of a call of our own that hangs.
const HANG_LIMIT_MS: u64 = 500;
/// A result of this many numbers in words is cut.
const LARGE_REPEATS: usize = 5_000;
/// Calls in one `call_many`.
const MANY: u64 = 3;

/// A call with a number that the answer must contain.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) number: u64,
    pub(super) server: usize,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    /// With this number of bytes beside the number.
    Echo(usize),
    Slow,
    /// Its result is cut.
    Large,
    /// Reads on in the result of the call of this number.
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
pub(super) struct Verdict {
    pub(super) fate: Fate,
    pub(super) why: String,
    /// Of a result that was cut.
    pub(super) handle: Option<String>,
}

/// Prefixes of errors that a fault can explain.
const TOLD: [&str; 2] = ["error server_unavailable: ", "it could not be kept: "];

impl Call {
    pub(super) fn draw(number: u64, servers: usize, random: &mut Random) -> Self {
        let kind = match random.below(100) {
            0..60 => Kind::Echo(random.below(2_000)),
            60..75 => Kind::Slow,
            75..80 => Kind::Large,
            80..88 => Kind::Search,
            88..94 => Kind::Describe,
            _ => Kind::Many,
        };
        Self {
            number,
            server: random.below(servers),
            kind,
        }
    }

    /// Makes this the call that causes the fault.
    pub(super) fn of_fault(&mut self, fault: Fault) {
        self.kind = match fault {
            Fault::CrashCall => Kind::Crash,
            Fault::GarbleCall => Kind::Garble,
            _ => Kind::Hang,
        };
    }

    /// The parameters of `tools/call`.
    pub(super) fn params(&self) -> Value {
        let at = |tool: &str| format!("s{}/{tool}", self.server);
        let ours = |tool: &str, arguments| json!({ "name": tool, "arguments": arguments });
        let tool = match &self.kind {
            Kind::Search => return ours("search_tools", json!({ "query": "echo" })),
            Kind::Describe => return ours("describe_tool", json!({ "name": at("echo") })),
            Kind::Many => {
                let calls = (0..MANY).map(|part| {
                    json!({ "tool_name": at("echo"), "tool_input": { "n": self.part(part) } })
                });
                let calls: Vec<Value> = calls.collect();
                return execute("proxy/call_many", &json!({ "calls": calls }));
            }
            Kind::Read { handle, .. } => {
                let input = json!({ "handle": handle, "offset": 0, "limit": 1 });
                return execute("proxy/read_result", &input);
            }
            Kind::Echo(_) | Kind::Large => "echo",
            Kind::Slow => "slow",
            Kind::Crash => "crash",
            Kind::Garble => "garble",
            Kind::Hang => "hang",
        };
        let mut params = execute(&at(tool), &self.input());
        if self.kind == Kind::Hang {
            params["arguments"]["timeout_ms"] = json!(HANG_LIMIT_MS);
        }
        params
    }

    fn part(&self, part: u64) -> String {
        format!("{}.{part}", self.number)
    }

    /// The input, which a server returns byte for byte.
    fn input(&self) -> Value {
        match self.kind {
            Kind::Echo(bytes) => json!({ "n": self.number, "pad": "x".repeat(bytes) }),
            Kind::Large => {
                let pad = format!("call {}; ", self.number).repeat(LARGE_REPEATS);
                json!({ "n": self.number, "pad": pad })
            }
            _ => json!({ "n": self.number }),
        }
    }

    /// Checks an answer, a message with the id of this call.
    pub(super) fn judge(&self, answer: &Value) -> Verdict {
        let verdict = |fate, why: &str| Verdict {
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
        Verdict {
            fate: Fate::Right,
            why: String::new(),
            handle: (self.kind == Kind::Large)
                .then(|| handle_in(&text))
                .flatten(),
        }
    }

    fn fate_of_error(&self, text: &str) -> Fate {
        let may_time_out = self.kind == Kind::Hang && text.starts_with("error timeout: ");
        if may_time_out || is_told(text) {
            Fate::Told
        } else {
            Fate::Unexplained
        }
    }

    fn is_own(&self, text: &str) -> bool {
        match &self.kind {
            Kind::Echo(_) | Kind::Slow | Kind::Garble => {
                let said = self.input().to_string();
                text == said
            }
            Kind::Large => is_of_call(text, self.number),
            Kind::Read { of, .. } => is_of_call(text, *of),
            Kind::Search => text.contains("/echo("),
            Kind::Describe => text.contains(&format!("s{}/echo", self.server)),
            // Each part of it may have failed for itself.
            Kind::Many => (0..MANY).all(|part| text.contains(&self.part(part))) || is_told(text),
            Kind::Crash | Kind::Hang => false,
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

/// Returns true if a part of a long result names this call, and no other.
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

/// The handle that the footer of a cut result names.
fn handle_in(text: &str) -> Option<String> {
    let (_, rest) = text.split_once(r#"{"handle":""#)?;
    Some(rest.split_once('"')?.0.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(kind: Kind) -> Call {
        Call {
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
    fn check(kind: Kind, answer: &Value, fate: Fate) {
        let verdict = call(kind).judge(answer);
        assert_eq!(verdict.fate, fate, "{verdict:?}");
    }

    #[test]
    fn only_its_own_answer_is_right() {
        check(Kind::Slow, &text(r#"{"n":7}"#), Fate::Right);
        check(Kind::Slow, &text(r#"{"n":8}"#), Fate::Anothers);
        check(Kind::Echo(2), &text(r#"{"n":7,"pad":"xx"}"#), Fate::Right);
        check(Kind::Echo(2), &text(r#"{"n":7,"pad":"x"}"#), Fate::Anothers);
        check(Kind::Large, &text("call 7; call 7; ca"), Fate::Right);
        check(Kind::Large, &text("call 7; call 8; "), Fate::Anothers);
        check(Kind::Many, &text("7.0 7.1 7.2"), Fate::Right);
        check(Kind::Many, &text("7.0 7.1 8.2"), Fate::Anothers);
        check(Kind::Hang, &text("done"), Fate::Anothers);
        let footer = r#"call 7; [cut: More: {"handle":"r1","part":2}]"#;
        let verdict = call(Kind::Large).judge(&text(footer));
        assert_eq!(verdict.handle.as_deref(), Some("r1"));
    }

    #[test]
    fn an_error_must_say_what_a_fault_can_explain() {
        let down = "error server_unavailable: s2: it ended";
        check(Kind::Slow, &error(down), Fate::Told);
        check(Kind::Slow, &error("error internal: x"), Fate::Unexplained);
        let late = "error timeout: no answer";
        check(Kind::Hang, &error(late), Fate::Told);
        check(Kind::Slow, &error(late), Fate::Unexplained);
        let lost = json!({ "error": { "code": -32_603, "message": "it may have run" } });
        check(Kind::Slow, &lost, Fate::Told);
        let odd = json!({ "error": { "code": -32_603, "message": "x" } });
        check(Kind::Slow, &odd, Fate::Unexplained);
    }
}
