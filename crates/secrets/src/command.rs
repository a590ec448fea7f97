//! Running a program that prints a secret.

use std::{process::Stdio, sync::Arc, time::Duration};

use processes::{Pace, Spawner};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::Command,
    time::timeout,
};

use crate::{error::ResolveError, secret::Secret};

/// The timeout of a command, which may have to ask the user for a fingerprint.
const WAIT: Duration = Duration::from_secs(30);

/// The most bytes that are read from each of its output streams.
const OUTPUT_BYTES_MAX: u64 = 64 * 1024;

/// The maximum length of the stderr excerpt in an error, in characters.
const SAID_CHARS_MAX: usize = 200;

/// Runs the command without a shell, in this process's environment, and returns its output without the
/// line ends at the end. If it takes too long, it is killed with all processes that it started.
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
    // Processes that it left running are killed as well.
    tree.stop(Pace::Hurried).await;
    let Ok((status, printed, said)) = ended else {
        return Err(fail(
            program,
            &format!("did not finish within {} s", WAIT.as_secs()),
        ));
    };
    let printed =
        String::from_utf8(printed).map_err(|_| fail(program, "printed text that is not UTF-8"))?;
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

/// Explains a failure by the last line of stderr, which is the most specific, without any text that
/// the command printed as the secret.
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
        hint: Some("run the command of `${command:...}` yourself to see its output".to_owned()),
    }
}

async fn read(stream: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        // The bytes that were read before a failure are returned.
        let _ = stream.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes).await;
    }
    bytes
}
