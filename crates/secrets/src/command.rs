//! A program that prints a secret.

use std::{process::Stdio, sync::Arc, time::Duration};

use processes::{Pace, Spawner};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::Command,
    time::timeout,
};

use crate::{error::ResolveError, secret::Secret};

/// It may have to ask its person for a finger; nobody waits longer for that.
const WAIT: Duration = Duration::from_secs(30);

/// What it prints is no longer than this, on either stream.
const OUTPUT_BYTES_MAX: u64 = 64 * 1024;

/// Of what it said on stderr, in characters.
const SAID_CHARS_MAX: usize = 200;

/// Runs the command without a shell, in our own environment, and takes what it prints without the
/// line ends behind it. It is ended with all that it started if it takes too long.
pub(crate) async fn run(words: &[String], spawner: &Arc<Spawner>) -> Result<Secret, ResolveError> {
    let (program, args) = words.split_first().ok_or_else(|| fail("", "is empty"))?;
    let mut command = Command::new(program);
    command
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut tree = spawner
        .spawn(command)
        .map_err(|error| fail(program, &format!("cannot be started: {error}")))?;
    let (stdout, stderr) = (tree.take_stdout(), tree.take_stderr());
    let running = async {
        let (printed, said) = tokio::join!(read(stdout), read(stderr));
        (tree.wait_for_exit().await, printed, said)
    };
    let ended = timeout(WAIT, running).await;
    // Whatever it left behind ends as well.
    tree.stop(Pace::Hurried).await;
    let Ok((status, printed, said)) = ended else {
        return Err(fail(
            program,
            &format!("gave no answer within {} s", WAIT.as_secs()),
        ));
    };
    let printed = String::from_utf8(printed).map_err(|_| fail(program, "printed no UTF-8"))?;
    let secret = printed.trim_end_matches(['\n', '\r']);
    let status = status.map_err(|error| fail(program, &error.to_string()))?;
    if !status.success() {
        let said = String::from_utf8_lossy(&said);
        return Err(fail(program, &explain(&status.to_string(), &said, secret)));
    }
    match secret {
        "" => Err(fail(program, "printed nothing")),
        secret if secret.len() as u64 >= OUTPUT_BYTES_MAX => Err(fail(program, "printed too much")),
        secret => Ok(Secret::new(secret)),
    }
}

/// The last line of its stderr says most; what it printed as a secret is not in it.
fn explain(status: &str, said: &str, printed: &str) -> String {
    let line = said.lines().rev().map(str::trim).find(|it| !it.is_empty());
    let Some(line) = line else {
        return format!("failed: {status}");
    };
    let hidden = match printed {
        "" => line.to_owned(),
        printed => line.replace(printed, "***"),
    };
    let shown: String = hidden
        .chars()
        .filter(|c| !c.is_control())
        .take(SAID_CHARS_MAX)
        .collect();
    format!("failed: {status}: {shown}")
}

fn fail(program: &str, why: &str) -> ResolveError {
    ResolveError {
        why: format!("the command `{program}` {why}"),
        hint: Some("run the command of `${command:...}` yourself, and see what it says".to_owned()),
    }
}

async fn read(stream: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        // What was read before a failure counts.
        let _ = stream.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes).await;
    }
    bytes
}
