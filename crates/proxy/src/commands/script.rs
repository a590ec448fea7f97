//! `proxy run`, `proxy types`: scripts from a shell.

use std::{
    fs,
    io::{self, Read as _},
    path::Path,
};

use anyhow::Context as _;
use gateway::shell::ShellReply;
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};

use crate::{cli::Run, exit::Exit, report};

/// Returns the call of `proxy/run_script` that runs a script.
pub(super) fn read_run(run: &Run) -> anyhow::Result<Box<RawValue>> {
    let script = read_text(&run.file)?;
    let args = match &run.args {
        Some(args) => serde_json::from_str(args).context("the arguments are no JSON")?,
        None => Value::Null,
    };
    let mut input = json!({"script": script, "args": args, "dry_run": run.dry_run});
    if let Some(ms) = run.timeout_ms {
        input["timeout_ms"] = Value::from(ms);
    }
    let call = json!({"tool_name": "proxy/run_script", "tool_input": input, "raw": true});
    Ok(to_raw_value(&call)?)
}

fn read_text(file: &Path) -> anyhow::Result<String> {
    if file == Path::new("-") {
        let mut text = String::new();
        let read = io::stdin().read_to_string(&mut text);
        return read.map(|_| text).context("cannot read stdin");
    }
    fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

/// Writes the declarations that a gateway answered into a folder, one file per server.
pub(super) fn write_types(reply: &ShellReply, folder: &Path) -> anyhow::Result<Exit> {
    let declared: Vec<(String, String)> = serde_json::from_str(&reply.data)
        .with_context(|| format!("no declarations: {}", reply.told))?;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for (name, text) in &declared {
        let file = folder.join(format!("{name}.d.ts"));
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        report::say(&format!("written: {}", file.display()));
    }
    Ok(Exit::Success)
}

/// Runs one script, whose lines are read from stdin.
pub(super) fn work_as_helper() -> Exit {
    match report::print_bytes(script::work_as_helper) {
        Ok(()) => Exit::Success,
        Err(_) => Exit::Nothing,
    }
}
