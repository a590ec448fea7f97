use std::time::Duration;

use fleet::{CallError, Failure, HeldUp, LoginNeeded, Ran};
use jsonrpc::ProtocolError;
use tool::{ServerName, ToolRef, Violation};

use super::{Audience, OtherThing, ToolError, code_of_call};
use crate::render::error::ERROR_CHARS_MAX;

fn at(server: &str, tool: &str) -> ToolRef {
    ToolRef::new(server.parse::<ServerName>().expect("a good name"), tool)
}

fn signed(server: &str, tool: &str, signature: &str) -> String {
    format!("{}{signature}", at(server, tool))
}

#[track_caller]
fn check(error: &ToolError, expected: &str) {
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_person_is_told_commands_and_a_model_tools() {
    let timeout = ToolError::Timeout {
        tool: at("slow", "sleep"),
        limit: Duration::from_secs(1),
        ran: Ran::Maybe,
        held_up: None,
    };
    let unknown = |near: Vec<String>, instead: Option<OtherThing>| ToolError::UnknownTool {
        asked: "notes".to_owned(),
        near,
        instead,
        missing: Vec::new(),
    };
    let add = || vec![signed("notes", "add", "(text: string)")];
    let server = OtherThing::Server("notes".parse().expect("a good name"));
    for (error, model, person) in [
        (
            timeout,
            "put \"proxy/timeout_ms\":2000 into tool_input.",
            "give --timeout-ms 2000.",
        ),
        (
            unknown(Vec::new(), None),
            "Use search_tools to find the right name.",
            "`proxy search WORDS` finds the right name.",
        ),
        (
            unknown(add(), None),
            "Otherwise use search_tools.",
            "Otherwise `proxy search WORDS`.",
        ),
        (
            unknown(add(), Some(server)),
            "\"notes\" is a server, not a tool. Some of its tools: notes/add(text: string). describe_tool {\"name\":\"notes\"} lists all.",
            "\"notes\" is a server, not a tool. Some of its tools: notes/add(text: string). `proxy search '*' --server notes` lists all.",
        ),
    ] {
        let told = error.text_for(Audience::Model);
        assert!(told.ends_with(model), "{told}");
        let told = error.text_for(Audience::Person);
        assert!(told.ends_with(person), "{told}");
    }
}

#[test]
fn texts_name_the_code_and_the_next_step() {
    check(
        &ToolError::UnknownTool {
            asked: "github/creat_issue".to_owned(),
            near: vec![signed("github", "create_issue", "(owner: string)")],
            instead: None,
            missing: Vec::new(),
        },
        "error unknown_tool: \"github/creat_issue\". Did you mean \
         github/create_issue(owner: string)? Otherwise use search_tools.",
    );
    check(
        &ToolError::AmbiguousTool {
            asked: "read_file".to_owned(),
            candidates: vec![
                signed("filesystem", "read_file", "(path: string)"),
                signed("serena", "read_file", "(relative_path: string)"),
            ],
        },
        "error ambiguous_tool: \"read_file\" is on filesystem/read_file(path: string) and \
         serena/read_file(relative_path: string). Call one of them by its whole name.",
    );
    check(
        &ToolError::Timeout {
            tool: at("slow", "sleep"),
            limit: Duration::from_mins(1),
            ran: Ran::Maybe,
            held_up: None,
        },
        "error timeout: slow/sleep gave no answer within 60000 ms; the call was cancelled, and \
         may have run. To wait longer, put \"proxy/timeout_ms\":120000 into tool_input.",
    );
    check(
        &ToolError::Timeout {
            tool: at("forms", "fill"),
            limit: Duration::from_secs(5),
            ran: Ran::No,
            held_up: Some(HeldUp::Question {
                client: "claude-code".to_owned(),
            }),
        },
        "error timeout: forms/fill gave no answer within 5000 ms; its server waits for an \
         answer that claude-code is asked for; the call did not run. To wait longer, put \
         \"proxy/timeout_ms\":10000 into tool_input.",
    );
    check(
        &ToolError::ServerUnavailable {
            server: "github".parse().expect("a good name"),
            failure: Box::new(Failure {
                stderr: Some("no token".to_owned()),
                ..Failure::new("it exited with code 1")
            }),
            tries: 2,
            ran: Ran::No,
            available: vec!["slack".parse().expect("a good name")],
        },
        "error server_unavailable: github: it exited with code 1; stderr: no token. The \
         call did not run. Tried 2 times in a row. Available: slack.",
    );
}

#[test]
fn a_login_is_asked_for_by_its_command() {
    let required = |again, scopes: &[&str]| ToolError::LoginRequired {
        server: "linear".parse().expect("a good name"),
        needed: Box::new(LoginNeeded {
            again,
            scopes: scopes.iter().map(ToString::to_string).collect(),
            address: None,
        }),
        why: "HTTP 401 Unauthorized".to_owned(),
    };
    check(
        &required(false, &[]),
        "error login_required: linear: ask the user to run \"proxy login linear\". Then call \
         again; nothing ran. It said: HTTP 401 Unauthorized.",
    );
    check(
        &required(true, &[]),
        "error login_required: linear: ask the user to run \"proxy login linear\" again, the \
         login has ended. Then call again; nothing ran. It said: HTTP 401 Unauthorized.",
    );
    check(
        &required(true, &["admin"]),
        "error login_required: linear: ask the user to run \"proxy login linear\", the login \
         lacks the scopes it asks for: admin. Then call again; nothing ran. It said: HTTP 401 \
         Unauthorized.",
    );
}

#[test]
fn a_text_is_bounded_and_keeps_its_end() {
    let violations = (0..500).map(|at| Violation {
        path: format!("key{at}"),
        message: "missing; expected string".to_owned(),
    });
    let error = ToolError::InvalidInput {
        tool: "a/b".to_owned(),
        violations: violations.collect(),
        signature: "(x: string)".to_owned(),
    };
    let text = error.to_string();
    assert_eq!(text.chars().count(), ERROR_CHARS_MAX);
    assert!(text.ends_with("Expected a/b(x: string)."), "{text}");
}

#[test]
fn the_code_of_a_failed_call_is_that_of_its_error() {
    let server: ServerName = "slow".parse().expect("a good name");
    let unavailable = |failure: Failure, ran: Ran| CallError::Unavailable {
        server: server.clone(),
        failure,
        tries: 1,
        ran,
    };
    let restarted = Failure {
        is_restart: true,
        ..Failure::new("it was restarted")
    };
    for error in [
        CallError::UnknownServer(server.clone()),
        unavailable(Failure::new("it ended"), Ran::No),
        unavailable(restarted.clone(), Ran::No),
        unavailable(restarted, Ran::Maybe),
        CallError::Cancelled,
        CallError::TimedOut {
            server: server.clone(),
            limit: Duration::from_secs(1),
            ran: Ran::Maybe,
            held_up: None,
        },
        CallError::Protocol {
            server: server.clone(),
            error: ProtocolError {
                code: "-32000".to_owned(),
                message: "no".to_owned(),
                data: None,
            },
        },
    ] {
        let code = code_of_call(&error);
        let shown = ToolError::of_call(error, &at("slow", "sleep"), "()", Vec::new);
        assert_eq!(shown.code(), code);
    }
}
