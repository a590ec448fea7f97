//! `proxy call`: a tool's arguments as a person writes them, or a kept result.

pub(crate) mod kept;

use std::path::Path;

use anyhow::Context as _;
use clap::Args;
use clap_complete::ArgValueCompleter;
use gateway::api::{CallRequest, ToolArguments};
use serde_json::{
    Map, Value,
    value::{RawValue, to_raw_value},
};

use self::kept::PartArgs;
use super::{
    api::{self, Daemon},
    run::read_text,
};
use crate::{
    cli::{complete::complete_tools, global::Global},
    exit::{Exit, refuse},
    report,
};

const EXAMPLES: &str = "\
Examples:
  proxy call git/git_status repo_path=.
  proxy call git/git_status '{\"repo_path\":\".\"}'
  proxy call git/git_status @arguments.json
  proxy call git/git_status - < arguments.json
  proxy call --handle r0123456789abcdef > whole.txt
  proxy call --handle r0123456789abcdef --grep 'ERROR|WARN'
  proxy call --handle r0123456789abcdef --select '.items[].id'
  proxy call --handle r0123456789abcdef --offset -20";

/// Call a tool, or print a stored result that was cut
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub(crate) struct CallArgs {
    /// Tool: `SERVER/TOOL`, or a name that only one server has; with --handle: the handle
    #[arg(value_name = "TOOL|HANDLE", add = ArgValueCompleter::new(complete_tools))]
    name: String,
    /// One JSON object, `@FILE` to read it from a file, `-` to read it from stdin, or KEY=VALUE pairs (a
    /// value that is valid JSON is passed as JSON)
    #[arg(value_name = "ARGUMENTS")]
    arguments: Vec<String>,
    /// Timeout in milliseconds
    #[arg(long, value_name = "MS")]
    timeout_ms: Option<u64>,
    /// Cut the result at this number of tokens
    #[arg(long, value_name = "COUNT")]
    max_tokens: Option<u64>,
    /// Print the whole result, however long
    #[arg(long)]
    raw: bool,
    /// Check the arguments, and do not call the tool
    #[arg(long)]
    dry_run: bool,
    /// Run in this process, without the daemon
    #[arg(long)]
    standalone: bool,
    /// Print a stored result by the handle in the footer of the cut one: all of it, or a part
    #[arg(long, conflicts_with_all = ["arguments", "timeout_ms", "raw", "dry_run"])]
    handle: bool,
    #[command(flatten)]
    part: PartArgs,
}

impl CallArgs {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Exit> {
        if self.handle {
            return kept::run(global, self.name, (self.part, self.max_tokens));
        }
        let call = self.read_call(global.json);
        let call = call.map_err(|error| refuse(report::describe(&error)))?;
        api::call(global, Daemon::unless(self.standalone), call)
    }

    fn read_call(&self, as_json: bool) -> anyhow::Result<CallRequest> {
        let arguments = ToolArguments {
            tool_name: &self.name,
            tool_input: &read_arguments(&self.arguments)?,
            raw: self.raw,
            dry_run: self.dry_run,
            timeout_ms: self.timeout_ms,
            max_tokens: self.max_tokens,
        };
        Ok(arguments.request(as_json)?)
    }
}

/// The arguments of `call`: one JSON object (its text is kept as it is), or pairs.
pub(super) fn read_arguments(given: &[String]) -> anyhow::Result<Box<RawValue>> {
    let [one] = given else {
        return Ok(to_raw_value(&read_pairs(given)?)?);
    };
    let file = if one == "-" {
        Some("-")
    } else {
        one.strip_prefix('@')
    };
    if let Some(file) = file {
        let source = if file == "-" { "stdin" } else { file };
        let why = || format!("the arguments in {source} are no JSON object");
        return parse_object(read_text(Path::new(file))?).with_context(why);
    }
    if one.trim_start().starts_with('{') {
        return parse_object(one.clone()).context("the arguments are no JSON object");
    }
    Ok(to_raw_value(&read_pairs(given)?)?)
}

fn parse_object(text: String) -> serde_json::Result<Box<RawValue>> {
    let _: Map<String, Value> = serde_json::from_str(&text)?;
    RawValue::from_string(text)
}

fn read_pairs(pairs: &[String]) -> anyhow::Result<Map<String, Value>> {
    let pair = |pair: &String| {
        let (key, value) = pair
            .split_once('=')
            .with_context(|| format!("`{pair}` is neither KEY=VALUE nor a JSON object"))?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        Ok((key.to_owned(), value))
    };
    pairs.iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(given: &[&str]) -> Result<String, String> {
        let given: Vec<String> = given.iter().map(ToString::to_string).collect();
        read_arguments(&given)
            .map(|raw| raw.get().to_owned())
            .map_err(|error| report::describe(&error))
    }

    #[test]
    fn arguments_are_read_as_an_object_from_a_file_or_as_pairs() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            format!("@{}", path.display())
        };
        let text = "{\r\n \"n\": 1.0\n}\n";
        assert_eq!(read(&[&file("good.json", text)]).unwrap(), text.trim());
        let marked = format!("\u{feff}{text}");
        assert_eq!(read(&[&file("marked.json", &marked)]).unwrap(), text.trim());
        assert_eq!(read(&[" {\"n\": 1.0}"]).unwrap(), "{\"n\": 1.0}");
        assert_eq!(
            read(&["n=1.0", "@type=x"]).unwrap(),
            r#"{"n":1.0,"@type":"x"}"#
        );
        assert_eq!(read(&[]).unwrap(), "{}");
        for (given, expected) in [
            (
                file("cut.json", "{\n \"n\":"),
                "cut.json are no JSON object: EOF while parsing a value at line 2 column 5",
            ),
            (
                file("list.json", "[1]"),
                "list.json are no JSON object: invalid type: sequence, expected a map at line 1 column 0",
            ),
            ("@missing.json".to_owned(), "cannot read missing.json: "),
            (
                "{\"n\":".to_owned(),
                "the arguments are no JSON object: EOF",
            ),
            ("n".to_owned(), "`n` is neither KEY=VALUE nor a JSON object"),
        ] {
            let why = read(&[&given]).unwrap_err();
            assert!(why.contains(expected), "{why}");
        }
    }
}
