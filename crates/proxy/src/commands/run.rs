//! `proxy run`: runs a script, or prints the declarations for scripts.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use clap::Args;
use clap_complete::ArgValueCompleter;
use gateway::api::{ApiReply, ApiRequest, CallRequest, ToolArguments};
use serde_json::{Value, json};

use super::api::{self, Daemon, explain_reply, with_api};
use crate::{
    cli::{complete::complete_servers, global::Global},
    exit::{Exit, refuse},
    report,
};

const EXAMPLES: &str = "\
Examples:
  proxy run triage.ts '{\"state\": \"open\"}'
  echo 'await search(\"create issue\")' | proxy run -
  proxy run triage.ts --dry-run
  proxy run --types github           print the declarations of one server
  proxy run --types --into types/    write those of all servers, for an editor

Exit codes: 0 the script returned a result, 1 it failed or reached a limit";

/// Run a script that calls tools, or print types for scripts
///
/// TypeScript or JavaScript. Every server is a global object. The result is the value of the last
/// expression, or of `return`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArgs {
    /// Script file; `-` reads the script from stdin
    #[arg(value_name = "FILE|-", required_unless_present = "types")]
    file: Option<PathBuf>,
    /// Value of `args` in the script, as JSON
    #[arg(value_name = "ARGS")]
    args: Option<String>,
    /// Run nothing; print the TypeScript declarations of one server, or of all
    #[arg(long, value_name = "SERVER", num_args = 0..=1, add = ArgValueCompleter::new(complete_servers))]
    #[arg(conflicts_with_all = ["file", "args", "timeout_ms", "dry_run"])]
    #[expect(clippy::option_option, reason = "an option with an optional value")]
    types: Option<Option<String>>,
    /// With --types: write one file per server into this folder
    #[arg(long, value_name = "FOLDER", requires = "types")]
    into: Option<PathBuf>,
    /// Time limit in milliseconds
    #[arg(long, value_name = "MS")]
    timeout_ms: Option<u64>,
    /// Print the calls that the script would make, and make none
    #[arg(long)]
    dry_run: bool,
    /// Run in this process, without the daemon
    #[arg(long)]
    standalone: bool,
}

impl RunArgs {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Exit> {
        if let Some(server) = self.types {
            return declare(global, server, self.into.as_deref(), self.standalone);
        }
        let call = self.read_call(global.json);
        let call = call.map_err(|error| refuse(report::describe(&error)))?;
        api::call(global, Daemon::unless(self.standalone), call)
    }

    /// Returns the call of `proxy/run_script` that runs the script.
    fn read_call(&self, as_json: bool) -> anyhow::Result<CallRequest> {
        let script = read_text(self.file.as_deref().context("no script is named")?)?;
        let args = match &self.args {
            Some(args) => serde_json::from_str(args).context("the arguments are not valid JSON")?,
            None => Value::Null,
        };
        let mut input = json!({"script": script, "args": args, "dry_run": self.dry_run});
        if let Some(ms) = self.timeout_ms {
            input["timeout_ms"] = Value::from(ms);
        }
        let arguments = ToolArguments {
            tool_name: "proxy/run_script",
            tool_input: &input,
            raw: true,
            dry_run: false,
            timeout_ms: None,
            max_tokens: None,
        };
        Ok(arguments.request(as_json)?)
    }
}

/// Reads a file, or stdin for `-`, without the byte order mark that some editors write.
pub(super) fn read_text(file: &Path) -> anyhow::Result<String> {
    let text = if file == Path::new("-") {
        io::read_to_string(io::stdin()).context("cannot read stdin")?
    } else {
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?
    };
    let content = text.strip_prefix('\u{feff}').map(str::to_owned);
    Ok(content.unwrap_or(text))
}

fn declare(
    global: &Global,
    server: Option<String>,
    into: Option<&Path>,
    is_standalone: bool,
) -> anyhow::Result<Exit> {
    with_api(global, Daemon::unless(is_standalone), async |api| {
        api.survey().await?;
        let reply = api.ask(ApiRequest::Types(server), Exit::Nothing).await?;
        let ApiReply::Types(declared) = reply else {
            return Err(explain_reply(&reply));
        };
        if let Some(folder) = into {
            write_types(&declared, folder)?;
        } else if global.json {
            report::print_data(&json!(declared).to_string());
        } else {
            let texts: Vec<&str> = declared.iter().map(|(_, text)| text.as_str()).collect();
            report::print_data(&texts.join("\n"));
        }
        Ok(Exit::Success)
    })
}

/// Writes declarations into a folder, one file per server.
fn write_types(declared: &[(String, String)], folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for (name, text) in declared {
        let file = folder.join(format!("{name}.d.ts"));
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        report::say(&format!("written: {}", file.display()));
    }
    Ok(())
}

/// Runs one script, whose lines are read from stdin.
pub(crate) fn work_as_helper() -> Exit {
    Exit::of_hit(report::print_bytes(script::work_as_helper).is_ok())
}
