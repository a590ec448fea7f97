//! What became of a script, as its model reads it.

use jsonrpc::Json;
use results::text_block;
use script::{Ended, Outcome};
use serde_json::Value;

use crate::{error::ToolError, reply::Reply};

/// The value, or the error; then what it printed, and of a dry run the calls.
pub(super) fn explain(outcome: Outcome, planned: Option<Vec<String>>) -> Reply {
    let Outcome { ended, log, calls } = outcome;
    let is_error = !matches!(ended, Ended::Value(_));
    let mut blocks = Vec::new();
    if let Some(planned) = planned {
        let plan = if planned.is_empty() {
            "would call nothing".to_owned()
        } else {
            planned.join("\n")
        };
        blocks.push(text_block(&plan));
        if is_error {
            // What it would read was not there: that it stops is no mistake of its own.
            let stopped = format!("then it stops: {}", sentence(ended, calls));
            blocks.push(text_block(&stopped));
        }
        return Reply::of_blocks(&blocks, false);
    }
    blocks.push(text_block(&match ended {
        Ended::Value(value) => match serde_json::from_str(value.get()) {
            Ok(Value::String(text)) => text,
            _ => value.get().to_owned(),
        },
        ended => sentence(ended, calls),
    }));
    if !log.is_empty() {
        blocks.push(text_block(&format!("log:\n{}", log.trim_end())));
    }
    Reply::of_blocks(&blocks, is_error)
}

/// The same for a script that called this one: the value, and nothing that it printed.
pub(super) fn answer_script(Outcome { ended, calls, .. }: Outcome) -> Reply {
    match ended {
        Ended::Value(value) => {
            let text = format!(r#"{{"content":[],"structuredContent":{value}}}"#);
            Reply::of_server(Json::of_built(text), false)
        }
        ended => Reply::of_blocks(&[text_block(&sentence(ended, calls))], true),
    }
}

fn sentence(ended: Ended, calls: usize) -> String {
    let made = match calls {
        0 => "it made no call".to_owned(),
        1 => "it had made 1 call".to_owned(),
        calls => format!("it had made {calls} calls"),
    };
    let (code, text) = match ended {
        Ended::Value(_) => return String::new(),
        Ended::Failed { text, line } => {
            let at = line
                .map(|line| format!("line {line}: "))
                .unwrap_or_default();
            let text = text.trim_end_matches('.');
            ("script_failed", format!("{at}{text}. {made}"))
        }
        Ended::Exceeded(limit) => ("script_limit", format!("{limit}. {made}")),
    };
    ToolError::Script { code, text }.to_string()
}

#[cfg(test)]
mod tests {
    use script::{Ended, Limit, Outcome};
    use serde_json::value::RawValue;

    use super::explain;

    #[test]
    fn a_text_is_itself_and_anything_else_is_json() {
        let of = |json: &str, log: &str| {
            let outcome = Outcome {
                ended: Ended::Value(RawValue::from_string(json.to_owned()).expect("it is JSON")),
                log: log.to_owned(),
                calls: 0,
            };
            explain(outcome, None).printable()
        };
        assert_eq!(of(r#""a\nb""#, ""), "a\nb");
        assert_eq!(of(r#"{"a":1}"#, "x\n"), "{\"a\":1}\nlog:\nx");
    }

    #[test]
    fn an_error_says_where_and_what_had_been_done() {
        let outcome = |ended| Outcome {
            ended,
            log: String::new(),
            calls: 2,
        };
        let failed = Ended::Failed {
            text: "TypeError: no".to_owned(),
            line: Some(3),
        };
        let reply = explain(outcome(failed), None);
        assert!(reply.is_error());
        assert_eq!(
            reply.printable(),
            "error script_failed: line 3: TypeError: no. it had made 2 calls."
        );
        let reply = explain(outcome(Ended::Exceeded(Limit::Calls)), None);
        assert!(
            reply
                .printable()
                .starts_with("error script_limit: calls: more than 100;")
        );
    }
}
