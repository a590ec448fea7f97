//! The process that runs one script (`proxy script-helper`).

use std::io::{self, BufRead, Write};

use crate::{
    advice::name_servers,
    compile::{Unreadable, compile},
    confine::confine,
    engine::{Channel, Engine},
    message::{FromScript, Job, ToScript},
};

/// Runs the script that our parent names, and says what became of it. It has nothing of ours: it
/// confines itself before it reads the first byte.
pub fn work_as_helper(output: &mut dyn Write) -> io::Result<()> {
    confine()?;
    let mut lines = Lines {
        input: io::stdin().lock(),
        output,
    };
    let Some(ToScript::Run(job)) = lines.hear()? else {
        return Ok(());
    };
    let outcome = run(&job, &mut lines)?;
    lines.say(&outcome)
}

/// From a script to what became of it; an error where nobody listens any more.
pub(crate) fn run(job: &Job, channel: &mut dyn Channel) -> io::Result<FromScript> {
    let compiled = match compile(&job.script, &job.servers) {
        Ok(compiled) => compiled,
        Err(Unreadable { text, line }) => return Ok(FromScript::Failed { text, line }),
    };
    if !compiled.calls.is_empty() {
        channel.say(&FromScript::Check(compiled.calls))?;
        match channel.hear()? {
            Some(ToScript::Checked(mistakes)) if mistakes.is_empty() => {}
            Some(ToScript::Checked(mistakes)) => {
                let text = format!("nothing ran. {}", mistakes.join("; "));
                return Ok(FromScript::Failed { text, line: None });
            }
            _ => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
    let mut said = Engine::new(job)?.run(&compiled.javascript, channel)?;
    if let FromScript::Failed { text, .. } = &mut said
        && let Some(more) = name_servers(text, &job.servers)
    {
        *text = more;
    }
    Ok(said)
}

struct Lines<'a, R> {
    input: R,
    output: &'a mut dyn Write,
}

impl<R: BufRead> Channel for Lines<'_, R> {
    fn hear(&mut self) -> io::Result<Option<ToScript>> {
        let mut line = Vec::new();
        if self.input.read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        Ok(Some(serde_json::from_slice(&line)?))
    }

    fn say(&mut self, message: &FromScript) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.output.write_all(&line)?;
        self.output.flush()
    }
}
