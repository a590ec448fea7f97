//! The output of a program that ends by itself.

use std::{pin::pin, process::ExitStatus};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::timeout,
};

use super::{Running, describe_exit};
use crate::limits::{COMMAND_OUTPUT_BYTES_MAX, COMMAND_STDERR_LINES_MAX, STDERR_END_WAIT};

#[derive(Debug)]
pub(crate) struct Finished {
    /// Its stdout; bytes that are not UTF-8 are replaced. Says so if it was cut.
    pub(crate) output: String,
    /// Its exit code; -1 after a signal, and `None` if it still runs because its output was cut.
    pub(crate) code: Option<i32>,
    /// The way in which it ended, for people.
    pub(crate) end: String,
    pub(crate) stderr: String,
}

impl Running {
    /// Writes the text to stdin, and reads stdout until the program has ended or its output is too long.
    /// A process that it leaves behind may hold its stdout, and is not waited for.
    pub(crate) async fn finish(&mut self, stdin: Option<String>) -> Finished {
        let writing = self.tree.take_stdin().zip(stdin).map(|(mut input, text)| {
            // A program may end without reading all of it.
            tokio::spawn(async move { input.write_all(text.as_bytes()).await })
        });
        let (mut bytes, output) = (Vec::new(), self.tree.take_stdout());
        {
            let mut reading = pin!(async {
                if let Some(output) = output {
                    let limit = COMMAND_OUTPUT_BYTES_MAX + 1;
                    let _ = output.take(limit).read_to_end(&mut bytes).await;
                }
            });
            tokio::select! {
                () = &mut reading => {}
                _ = self.tree.wait_for_exit() => drop(timeout(STDERR_END_WAIT, &mut reading).await),
            }
        }
        let is_cut = u64::try_from(bytes.len()).is_ok_and(|len| len > COMMAND_OUTPUT_BYTES_MAX);
        let mut output = String::from_utf8_lossy(&bytes).into_owned();
        let mut status = None;
        if is_cut {
            let mib = COMMAND_OUTPUT_BYTES_MAX >> 20;
            let note = format!("the output is longer than {mib} MiB; the program was ended");
            output = format!("{output}\n[{note}]");
        } else {
            status = self.tree.wait_for_exit().await.ok();
        }
        if let Some(writing) = writing {
            writing.abort();
        }
        let _ = timeout(STDERR_END_WAIT, self.end_of_stderr()).await;
        Finished {
            output,
            code: status.map(|it: ExitStatus| it.code().unwrap_or(-1)),
            end: status.map(describe_exit).unwrap_or_default(),
            stderr: self.stderr.last_lines(COMMAND_STDERR_LINES_MAX),
        }
    }
}
