//! A server for failures: errors, a crash, slowness, noise.

use std::{io::Write as _, time::Duration};

use serde::Deserialize;
use serde_json::json;

use super::demo_server::{DemoServer, DemoTool, ToolOutcome, ToolReply, input, tool};

const WAIT_MS_MAX: u64 = 600_000;
const NOISE_LINES_MAX: u32 = 100_000;

pub(super) fn server() -> DemoServer {
    DemoServer {
        name: "flaky",
        instructions: "Fails in every way a server can, when asked to.",
        tools: vec![always_fails(), crash(), slow(), noisy()],
    }
}

#[derive(Deserialize)]
struct Fails {
    reason: String,
}

fn always_fails() -> DemoTool {
    let definition = json!({
        "name": "always_fails",
        "title": "Always fails",
        "description": "Answer with a tool error, always. Shows what an error of a server looks like to the caller.",
        "inputSchema": input(&[], &json!({
            "reason": { "type": "string", "default": "the printer is on fire", "description": "What the error says" }
        })),
        "annotations": { "readOnlyHint": true, "idempotentHint": true, "openWorldHint": false }
    });
    tool(definition, |Fails { reason }| -> ToolOutcome {
        Err(format!("cannot do it: {reason}"))
    })
}

#[derive(Deserialize)]
struct Crash {
    exit_code: u8,
}

fn crash() -> DemoTool {
    let definition = json!({
        "name": "crash",
        "title": "Crash",
        "description": "End the server process in the middle of the call, without an answer. It can be started again.",
        "inputSchema": input(&[], &json!({
            "exit_code": { "type": "integer", "minimum": 0, "maximum": 255, "default": 1, "description": "The code the process ends with" }
        })),
        "annotations": { "readOnlyHint": false, "destructiveHint": true, "idempotentHint": true, "openWorldHint": false }
    });
    tool(definition, |Crash { exit_code }| -> ToolOutcome {
        complain(&format!(
            "flaky: crashing with exit code {exit_code}, as asked\n"
        ));
        Ok(ToolReply::Crash(i32::from(exit_code)))
    })
}

#[derive(Deserialize)]
struct Slow {
    wait_ms: u64,
}

fn slow() -> DemoTool {
    let definition = json!({
        "name": "slow",
        "title": "Answer slowly",
        "description": "Wait before answering, as a server does that has a lot of work. For trying time limits and cancelling.",
        "inputSchema": input(&[], &json!({
            "wait_ms": { "type": "integer", "minimum": 0, "maximum": WAIT_MS_MAX, "default": 1000, "description": "How long to wait, in milliseconds" }
        })),
        "annotations": { "readOnlyHint": true, "idempotentHint": true, "openWorldHint": false }
    });
    tool(definition, |Slow { wait_ms }| -> ToolOutcome {
        if wait_ms > WAIT_MS_MAX {
            return Err(format!("wait_ms is at most {WAIT_MS_MAX}"));
        }
        let text = format!("Answered after {wait_ms} ms.");
        Ok(ToolReply::Late(Duration::from_millis(wait_ms), text))
    })
}

#[derive(Deserialize)]
struct Noisy {
    lines: u32,
}

fn noisy() -> DemoTool {
    let definition = json!({
        "name": "noisy",
        "title": "Make noise",
        "description": "Write colourful log lines to standard error, as many servers do, and then answer as if nothing had happened.",
        "inputSchema": input(&[], &json!({
            "lines": { "type": "integer", "minimum": 0, "maximum": NOISE_LINES_MAX, "default": 100, "description": "How many lines to write" }
        })),
        "annotations": { "readOnlyHint": true, "idempotentHint": true, "openWorldHint": false }
    });
    tool(definition, |Noisy { lines }| -> ToolOutcome {
        if lines > NOISE_LINES_MAX {
            return Err(format!("lines is at most {NOISE_LINES_MAX}"));
        }
        complain(&noise(lines));
        Ok(ToolReply::Text(format!(
            "Wrote {lines} lines to standard error."
        )))
    })
}

fn noise(lines: u32) -> String {
    let line = |number| format!("\u{1b}[33mwarn\u{1b}[0m flaky: line {number} of {lines}\n");
    (1..=lines).map(line).collect::<Vec<_>>().concat()
}

/// Standard error may be closed; that is no error here.
fn complain(text: &str) {
    drop(std::io::stderr().write_all(text.as_bytes()));
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use std::time::Duration;

    use super::super::tests::call;
    use super::{ToolReply, noise, server};

    #[test]
    fn a_failure_says_the_reason_it_was_given() {
        let answer = call(&server(), "always_fails", json!({ "reason": "out of ink" }));
        assert_eq!(answer, Err("cannot do it: out of ink".to_owned()));
    }

    #[test]
    fn a_crash_has_the_exit_code_asked_for() {
        let answer = call(&server(), "crash", json!({ "exit_code": 3 }));
        assert_eq!(answer, Ok(ToolReply::Crash(3)));
        assert!(call(&server(), "crash", json!({ "exit_code": 256 })).is_err());
    }

    #[test]
    fn slowness_is_as_long_as_asked_and_bounded() {
        let answer = call(&server(), "slow", json!({ "wait_ms": 250 }));
        let expected = ToolReply::Late(
            Duration::from_millis(250),
            "Answered after 250 ms.".to_owned(),
        );
        assert_eq!(answer, Ok(expected));
        assert!(call(&server(), "slow", json!({ "wait_ms": 600_001 })).is_err());
    }

    #[test]
    fn noise_has_its_lines_and_its_colours() {
        let text = noise(3);
        assert_eq!(text.lines().count(), 3);
        assert!(text.contains("\u{1b}[33m"));
    }
}
