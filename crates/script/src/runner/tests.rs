//! Scripts in real processes: each is this test program in the role of the helper.

use std::{
    env, fs, io,
    sync::atomic::{AtomicUsize, Ordering},
};

use futures::{FutureExt as _, future::BoxFuture};
use serde_json::{json, value::to_raw_value};

use super::*;
use crate::{limits::WALL_MAX, work_as_helper};

#[test]
#[ignore = "the child process of the tests of this file, which start it by name"]
fn role_of_the_helper() {
    // The test harness writes to stdout, so the shell provides another output.
    let mut output = fs::File::options().write(true).open("/dev/fd/3").unwrap();
    let worked = work_as_helper(&mut output);
    worked.unwrap();
}

fn runner() -> Runner {
    let script = "exec \"$0\" runner::tests::role_of_the_helper --exact --ignored --nocapture 3>&1 >/dev/null";
    let program = env::current_exe().unwrap();
    let arguments = ["-c".into(), script.into(), program.into()];
    Runner::new("/bin/sh".into(), arguments.to_vec())
}

/// Answers each call with its argument `text`.
#[derive(Default)]
struct Echo {
    calls: AtomicUsize,
    /// The id of the process that the first call kills.
    victim: Option<u32>,
}

impl Tools for Echo {
    fn check(&self, _: Vec<CallSite>) -> BoxFuture<'_, Vec<String>> {
        async { Vec::new() }.boxed()
    }

    fn answer(&self, question: ScriptRequest) -> BoxFuture<'_, RequestResult> {
        async move {
            self.calls.fetch_add(1, Ordering::Relaxed);
            if let Some(victim) = self.victim {
                let kill = tokio::process::Command::new("kill")
                    .args(["-9", &victim.to_string()])
                    .status();
                assert!(kill.await.unwrap().success());
                return futures::future::pending().await;
            }
            let ScriptRequest::Call { input, .. } = question else {
                return Ok(RawValue::NULL.to_owned());
            };
            let input: serde_json::Value = serde_json::from_str(input.get()).unwrap();
            let text = &input["text"];
            Ok(to_raw_value(&json!({"content": [{"type": "text", "text": text}]})).unwrap())
        }
        .boxed()
    }
}

async fn run(runner: &Runner, script: &str, tools: &Echo) -> io::Result<ScriptOutcome> {
    let job = Job {
        script: script.to_owned(),
        // JSON may have line breaks between its tokens, but a message to the process is one line.
        args: RawValue::from_string("{\n\"n\":\r\n[1,\r2]}".to_owned()).expect("the value is JSON"),
        servers: vec!["s".to_owned()],
        tools: RawValue::from_string(r#"{"git-hub":["a","b.c"]}"#.to_owned())
            .expect("the value is JSON"),
        dry_run: false,
        wall_ms: u64::try_from(WALL_MAX.as_millis()).unwrap(),
    };
    let outcome = runner.run(&job, &Clock::start(WALL_MAX), tools).await;
    runner.stop().await;
    outcome
}

async fn ends(script: &str) -> (String, usize) {
    let tools = Echo::default();
    let ended = run(&runner(), script, &tools).await.unwrap().ended;
    let ended = match ended {
        Ended::Value(value) => value.get().to_owned(),
        other => format!("{other:?}"),
    };
    (ended, tools.calls.into_inner())
}

#[tokio::test]
async fn parallel_calls_whose_arguments_and_answers_fill_both_pipes_are_all_answered() {
    let of = |calls: usize, bytes: usize| {
        format!(
            "const made = await Promise.all(Array.from({{ length: {calls} }}, (_, n) =>\n\
             s.echo({{ text: 'abcdefghij'[n % 10].repeat({bytes}) }})));\n\
             made.every((it, n) => it.length === {bytes} && it[0] === 'abcdefghij'[n % 10]) && made.length"
        )
    };
    assert_eq!(ends(&of(30, 20_000)).await, ("30".to_owned(), 30));
    assert_eq!(ends(&of(30, 1_000_000)).await, ("30".to_owned(), 30));
}

#[tokio::test]
async fn arguments_of_several_lines_reach_a_script() {
    assert_eq!(ends("args.n").await.0, "[1,2]");
}

#[tokio::test]
async fn too_many_bytes_end_a_script_by_the_limit_that_it_met() {
    let says =
        "await Promise.all(Array.from({ length: 99 }, () => s.echo({ text: 'x'.repeat(1e6) })))";
    assert_eq!(ends(says).await.0, "Exceeded(BytesOut)");
}

#[tokio::test]
async fn a_process_that_is_killed_is_told_as_killed() {
    let runner = runner();
    let child = runner.start().unwrap();
    let victim = child.id();
    *runner.ready.lock() = Some(child);
    let tools = Echo {
        victim,
        ..Echo::default()
    };
    let outcome = run(&runner, "await s.echo({})", &tools).await.unwrap();
    assert!(matches!(outcome.ended, Ended::Killed), "{outcome:?}");
    assert_eq!(outcome.calls, 1);
}

#[tokio::test]
async fn a_process_that_was_killed_while_it_waited_is_replaced() {
    let runner = runner();
    let dies = Runner::new(
        "/bin/sh".into(),
        vec!["-c".into(), "read job; kill -9 $$".into()],
    );
    *runner.ready.lock() = Some(dies.start().unwrap());
    let outcome = run(&runner, "1 + 1", &Echo::default()).await.unwrap();
    assert!(
        matches!(&outcome.ended, Ended::Value(value) if value.get() == "2"),
        "{outcome:?}"
    );
    // A new process that is killed is not replaced.
    let outcome = run(&dies, "1 + 1", &Echo::default()).await.unwrap();
    assert!(matches!(outcome.ended, Ended::Killed), "{outcome:?}");
}
