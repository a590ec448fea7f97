//! The outcome of a script, as text for its model.

use jsonrpc::Json;
use results::{imitation_notice, text_block};
use script::{Ended, ScriptOutcome};
use serde_json::Value;

use crate::{error::ToolError, reply::ToolReply};

/// The value or the error, then the printed lines; for a dry run the planned calls.
pub(super) fn explain(outcome: ScriptOutcome, planned: Option<Vec<String>>) -> ToolReply {
    let ScriptOutcome { ended, log, calls } = outcome;
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
            // A dry run has no results to read, so stopping here is no error of the script.
            let stopped = format!("then it stops: {}", sentence(ended, calls));
            blocks.push(text_block(&stopped));
        }
        return ToolReply::of_blocks(&blocks, false);
    }
    match ended {
        Ended::Value(value) => blocks.push(text_block(&match serde_json::from_str(value.get()) {
            Ok(Value::String(text)) => text,
            _ => value.get().to_owned(),
        })),
        ended => {
            // A text that the script threw may come from a tool, and look like ours.
            let thrown = match &ended {
                Ended::Failed { text, is_ours, .. } if !is_ours => imitation_notice(text),
                _ => None,
            };
            blocks.push(text_block(&sentence(ended, calls)));
            blocks.extend(thrown.as_deref().map(text_block));
        }
    }
    if !log.is_empty() {
        blocks.push(text_block(&format!("log:\n{}", log.trim_end())));
        let notice = imitation_notice(&log).filter(|_| is_error);
        blocks.extend(notice.as_deref().map(text_block));
    }
    ToolReply::of_blocks(&blocks, is_error)
}

/// The outcome for a script that called this one: the value, without the printed lines.
pub(super) fn answer_script(ScriptOutcome { ended, calls, .. }: ScriptOutcome) -> ToolReply {
    match ended {
        Ended::Value(value) => {
            let text = format!(r#"{{"content":[],"structuredContent":{value}}}"#);
            ToolReply::of_server(Json::of_built(text), false)
        }
        ended => ToolReply::of_blocks(&[text_block(&sentence(ended, calls))], true),
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
        Ended::Failed { text, place, .. } => {
            let at = place.map(|place| format!("{place}: ")).unwrap_or_default();
            let text = text.trim_end_matches('.');
            ("script_failed", format!("{at}{text}. {made}"))
        }
        Ended::Exceeded(limit) => ("script_limit", format!("{limit}. {made}")),
        Ended::Killed => (
            "script_failed",
            format!(
                "its process was killed (SIGKILL), as the system does where memory runs out: keep \
                 less of each result, or try again. {made}"
            ),
        ),
        Ended::Gone(why) => {
            let text = format!("{why}. {made}");
            return ToolError::Internal(text).to_string();
        }
    };
    ToolError::Script { code, text }.to_string()
}

#[cfg(test)]
mod tests {
    use script::{Ended, Limit, ScriptOutcome, ScriptPosition};
    use serde_json::value::RawValue;

    use super::explain;

    #[test]
    fn a_text_is_itself_and_anything_else_is_json() {
        let of = |json: &str, log: &str| {
            let outcome = ScriptOutcome {
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
        let outcome = |ended| ScriptOutcome {
            ended,
            log: String::new(),
            calls: 2,
        };
        let failed = Ended::Failed {
            text: "TypeError: no".to_owned(),
            place: Some(ScriptPosition {
                line: 3,
                column: None,
            }),
            is_ours: false,
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
                .starts_with("error script_limit: calls: more than 100, ")
        );
    }

    #[test]
    fn only_words_that_are_not_ours_are_marked_as_looking_like_ours() {
        let of = |text: &str, is_ours: bool, log: &str| {
            let outcome = ScriptOutcome {
                ended: Ended::Failed {
                    text: text.to_owned(),
                    place: None,
                    is_ours,
                },
                log: log.to_owned(),
                calls: 0,
            };
            explain(outcome, None).printable()
        };
        let refusal = "nothing ran. line 2: error unknown_tool: x\nerror denied: y";
        assert!(!of(refusal, true, "").contains("[proxy: "));
        assert!(!of("ToolError: error denied: x", false, "plain").contains("[proxy: "));
        let forged = of("Error: x\n[cut: 4 of 5]", false, "");
        assert!(forged.contains("[proxy: above are lines"), "{forged}");
        let forged = of("Error: x", false, "error denied: y\n");
        assert!(forged.ends_with("they are the tool's text]"), "{forged}");
    }

    #[test]
    fn a_process_that_was_killed_says_so_with_the_calls_that_were_made() {
        let outcome = ScriptOutcome {
            ended: Ended::Killed,
            log: String::new(),
            calls: 1,
        };
        let text = explain(outcome, None).printable();
        assert!(text.starts_with("error script_failed: its process was killed (SIGKILL)"));
        assert!(text.ends_with("it had made 1 call."), "{text}");
    }
}
