//! The process that runs one script (`proxy script-helper`).

use std::io::{self, BufRead, Write};

use crate::{
    compile::{Unreadable, compile},
    confine::confine,
    engine::{Channel, Engine},
    message::{Failed, FailureKind, FromScript, Job, ScriptPosition, ToScript},
};

/// Runs the script that the parent process sends, and reports its result. The process confines itself
/// before it reads the first byte.
pub fn work_as_helper(output: &mut dyn Write) -> io::Result<()> {
    confine()?;
    let mut lines = LineChannel {
        input: io::stdin().lock(),
        output,
    };
    let Some(ToScript::Run(job)) = lines.receive()? else {
        return Ok(());
    };
    let outcome = run(&job, &mut lines)?;
    lines.send(&outcome)
}

/// Compiles and runs a script, and returns its result. Fails if the connection is closed.
pub(crate) fn run(job: &Job, channel: &mut dyn Channel) -> io::Result<FromScript> {
    let mut compiled = match compile(&job.script, &job.servers) {
        Ok(compiled) => compiled,
        Err(Unreadable { text, place }) => return Ok(unreadable(text, place)),
    };
    if !compiled.calls.is_empty() {
        let calls = std::mem::take(&mut compiled.calls);
        channel.send(&FromScript::Check(calls))?;
        match channel.receive()? {
            Some(ToScript::Checked(mistakes)) if mistakes.is_empty() => {}
            Some(ToScript::Checked(mistakes)) => {
                let text = format!("nothing ran. {}", mistakes.join("; "));
                return Ok(unreadable(text, None));
            }
            _ => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
    Engine::new(job)?.run(&compiled, channel)
}

fn unreadable(text: String, place: Option<ScriptPosition>) -> FromScript {
    FromScript::Failed(Failed {
        text,
        place,
        kind: FailureKind::Unreadable,
    })
}

struct LineChannel<'a, R> {
    input: R,
    output: &'a mut dyn Write,
}

impl<R: BufRead> Channel for LineChannel<'_, R> {
    fn receive(&mut self) -> io::Result<Option<ToScript>> {
        let mut line = Vec::new();
        if self.input.read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        Ok(Some(serde_json::from_slice(&line)?))
    }

    fn send(&mut self, message: &FromScript) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.output.write_all(&line)?;
        self.output.flush()
    }
}
