//! A jq expression over a kept result, in a process of its own: an expression may run for ever
//! or want all memory there is, and a process can be ended.

use std::{
    io::{self, Read as _},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use jaq_core::{
    Compiler, Ctx, Vars, data,
    load::{self, Arena, File, Loader},
    unwrap_valr,
};
use jaq_json::{Val, read};
use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::Command,
    time::timeout,
};

use super::ReadError;
use crate::{cut::Kind, results::Kept};

/// How long an expression may run.
const TIME_MAX: Duration = Duration::from_secs(10);

/// The memory of its process, in bytes: JSON takes a multiple of its text.
const MEMORY_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;

/// What it may answer, in bytes.
const OUTPUT_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// The longest expression, in bytes.
const FILTER_BYTES_MAX: usize = 16 * 1024;

/// What the process is told, as one line of JSON.
#[derive(Serialize, Deserialize)]
struct Task {
    path: PathBuf,
    filter: String,
}

/// The values that the expression answers, a line each.
pub(super) async fn select(path: &Path, filter: &str) -> Result<String, ReadError> {
    if filter.len() > FILTER_BYTES_MAX {
        let why = format!("longer than {FILTER_BYTES_MAX} bytes");
        return Err(ReadError::Wanted("select", why));
    }
    let program = crate::front::own_program()
        .ok_or_else(|| ReadError::Bounds("our own program cannot be found".to_owned()))?;
    let task = Task {
        path: path.to_owned(),
        filter: filter.to_owned(),
    };
    let task = serde_json::to_vec(&task).expect("texts are always JSON");
    let mut child = Command::new(program)
        .arg("select")
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (mut output, mut complaint) = (Vec::new(), Vec::new());
    let talking = async {
        if let Some(mut stdin) = stdin {
            // A process that ended before it read says why on its other streams.
            let _ = stdin.write_all(&task).await;
        }
        if let (Some(stdout), Some(stderr)) = (stdout, stderr) {
            let mut stdout = stdout.take(OUTPUT_BYTES_MAX + 1);
            let mut stderr = stderr.take(4_096);
            tokio::try_join!(
                stdout.read_to_end(&mut output),
                stderr.read_to_end(&mut complaint)
            )?;
        }
        if output.len() as u64 > OUTPUT_BYTES_MAX {
            child.kill().await?;
        }
        child.wait().await
    };
    let ended = timeout(TIME_MAX, talking).await;
    let status = match ended {
        Ok(status) => status?,
        Err(_) => {
            child.kill().await?;
            let seconds = TIME_MAX.as_secs();
            return Err(ReadError::Bounds(format!(
                "ended after {seconds} s; narrow it"
            )));
        }
    };
    if output.len() as u64 > OUTPUT_BYTES_MAX {
        let mib = OUTPUT_BYTES_MAX / (1024 * 1024);
        return Err(ReadError::Bounds(format!(
            "it answers more than {mib} MiB; narrow it"
        )));
    }
    let complaint = String::from_utf8_lossy(&complaint).trim().to_owned();
    match status.code() {
        Some(0) => String::from_utf8(output)
            .map_err(|_| ReadError::Bounds("it answers what is no text".to_owned())),
        Some(1) => Err(ReadError::Wanted("select", complaint)),
        _ => {
            let gib = MEMORY_BYTES_MAX / (1024 * 1024 * 1024);
            let why = format!("it needs more than {gib} GiB of memory, or failed; narrow it");
            Err(ReadError::Bounds(why))
        }
    }
}

/// What the process does: the task comes on stdin, the values go to `output`. The error is for
/// whoever wrote the expression.
pub(crate) fn work(mut output: impl io::Write) -> Result<(), String> {
    // Whoever asked is gone with our parent.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let limit = |max: u64| Rlimit {
        current: Some(max),
        maximum: Some(max),
    };
    let say = |error: &dyn std::fmt::Display| error.to_string();
    setrlimit(Resource::As, limit(MEMORY_BYTES_MAX)).map_err(|error| say(&error))?;
    let seconds = TIME_MAX.as_secs() + 2;
    setrlimit(Resource::Cpu, limit(seconds)).map_err(|error| say(&error))?;
    let mut task = Vec::new();
    io::stdin()
        .read_to_end(&mut task)
        .map_err(|error| say(&error))?;
    let task: Task = serde_json::from_slice(&task).map_err(|error| say(&error))?;
    let mut kept = Kept::reopen(&task.path).map_err(|error| say(&error))?;
    let mut has_json = false;
    for place in 0..kept.head.texts.len() {
        if matches!(kept.head.texts[place].kind, Kind::Json | Kind::JsonLines) {
            has_json = true;
            let text = kept.text(place).map_err(|error| say(&error))?;
            run(&task.filter, &text, &mut output)?;
        }
    }
    if !has_json {
        return Err("the result is no JSON; use part, grep or offset".to_owned());
    }
    output.flush().map_err(|error| say(&error))
}

/// Runs an expression over each value of a text.
fn run(filter: &str, text: &str, output: &mut impl io::Write) -> Result<(), String> {
    let defs = jaq_core::defs()
        .chain(jaq_std::defs())
        .chain(jaq_json::defs());
    let funs = jaq_core::funs()
        .chain(jaq_std::funs())
        .chain(jaq_json::funs());
    let arena = Arena::default();
    let program = File {
        code: filter,
        path: (),
    };
    let modules = Loader::new(defs).load(&arena, program);
    let modules = modules.map_err(|errors| unread(&errors))?;
    let filter = Compiler::default().with_funs(funs).compile(modules);
    let filter = filter.map_err(|errors| {
        let unknown = errors.iter().flat_map(|(_, errors)| errors);
        let unknown = unknown.map(|(name, what)| format!("unknown {} `{name}`", what.as_str()));
        unknown.collect::<Vec<_>>().join(", ")
    })?;
    let context = Ctx::<data::JustLut<Val>>::new(&filter.lut, Vars::new([]));
    for value in read::parse_many(text.as_bytes()) {
        let value = value.map_err(|error| error.to_string())?;
        for found in filter.id.run((context.clone(), value)).map(unwrap_valr) {
            let found = found.map_err(|error| error.to_string())?;
            let line = match &found {
                // As `jq -r` does: a text is for reading.
                Val::TStr(text) => String::from_utf8_lossy(text).into_owned(),
                other => other.to_string(),
            };
            writeln!(output, "{line}").map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// What cannot be read in an expression, and where.
fn unread(errors: &load::Errors<&str, ()>) -> String {
    let mut told = Vec::new();
    for (_, error) in errors {
        match error {
            load::Error::Io(errors) => {
                told.extend(errors.iter().map(|(path, why)| format!("{path}: {why}")));
            }
            load::Error::Lex(errors) => {
                let near = errors
                    .iter()
                    .map(|(expected, at)| near(expected.as_str(), at));
                told.extend(near);
            }
            load::Error::Parse(errors) => {
                let near = errors
                    .iter()
                    .map(|(expected, at)| near(expected.as_str(), at));
                told.extend(near);
            }
        }
    }
    format!("no jq expression: {}", told.join(", "))
}

fn near(expected: &str, at: &str) -> String {
    let at: String = at.chars().take(30).collect();
    if at.is_empty() {
        return format!("expected {expected} at its end");
    }
    format!("expected {expected} at `{at}`")
}

#[cfg(test)]
mod tests {
    use super::run;

    #[track_caller]
    fn check(filter: &str, text: &str, expected: Result<&str, &str>) {
        let mut output = Vec::new();
        let done = run(filter, text, &mut output);
        let output = String::from_utf8(output).expect("JSON is UTF-8");
        assert_eq!(
            done.map(|()| output),
            expected.map(str::to_owned).map_err(str::to_owned)
        );
    }

    #[test]
    fn an_expression_answers_a_line_a_value() {
        let items = r#"{"items":[{"id":1,"t":"a b"},{"id":2,"t":"c"}]}"#;
        check(".items[].id", items, Ok("1\n2\n"));
        check(".items[0].t", items, Ok("a b\n"));
        check("[.items[] | {id}]", items, Ok("[{\"id\":1},{\"id\":2}]\n"));
        check(".x", "{\"x\":1}\n{\"x\":2}\n", Ok("1\n2\n"));
        check("nonsense", "{}", Err("unknown filter `nonsense`"));
        check(
            ".[",
            "{}",
            Err("no jq expression: expected closing bracket at its end"),
        );
    }
}
