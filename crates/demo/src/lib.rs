//! `proxy demo`: a session on a built-in server, for a person to follow.
//!
//! The server is a child process like any other, and every result is the one that a client would get.
#![warn(missing_docs)]

mod server;

use std::sync::Arc;

use anyhow::Context as _;
use excerpt::tokens;
use futures::StreamExt as _;
use gateway::{
    CallContext, DESCRIBE, EXECUTE, Gateway, SEARCH, ToolReply, instructions, policy::ClientPolicy,
    survey,
};
use printable::group_digits;
use serde_json::{Value, json, value::RawValue};
use server::NAME;

pub use server::serve;

/// The number of lines of an answer that are shown.
const LINES_SHOWN: usize = 9;

/// Plays the session on the server that [`configuration`] names; `say` prints the text for the user.
pub async fn play(gateway: &Arc<Gateway>, say: fn(&str)) -> anyhow::Result<()> {
    let gateway = Arc::clone(gateway);
    Play { gateway, say }.run().await
}

/// Returns the configuration of the demo.
pub fn configuration() -> anyhow::Result<String> {
    let program = std::env::current_exe().context("cannot find our own program")?;
    let program = program
        .to_str()
        .context("the path of our own program is not UTF-8")?;
    Ok(format!(
        "[servers.{NAME}]\ncommand = {}\nargs = [\"demo-server\"]\n",
        Value::from(program)
    ))
}

struct Play {
    gateway: Arc<Gateway>,
    say: fn(&str),
}

impl Play {
    async fn run(&self) -> anyhow::Result<()> {
        self.reindex().await?;
        self.title("A model searches for a tool in its own words");
        self.show(SEARCH, json!({"query": "write down a new note"}))
            .await?;
        self.title("The signature is often enough; `describe_tool` returns the whole schema");
        self.show(DESCRIBE, json!({"name": "notes/add_note"}))
            .await?;
        self.title("The model calls the tool by its name; the server starts with the first call");
        let note = json!({"title": "Milk", "body": "Buy two litres of oat milk"});
        self.show(
            EXECUTE,
            json!({"tool_name": "notes/add_note", "tool_input": note}),
        )
        .await?;
        self.title("Arguments written as a string are repaired");
        let stringified = json!({"query": "milk"}).to_string();
        let call = json!({"tool_name": "notes/search_notes", "tool_input": stringified});
        self.show(EXECUTE, call).await?;
        self.title("A guessed name is corrected");
        let call = json!({"tool_name": "notes/find_notes", "tool_input": {"query": "milk"}});
        self.show(EXECUTE, call).await?;
        self.title("A missing argument is reported before the server is called");
        let call = json!({"tool_name": "notes/add_note", "tool_input": {"body": "Oat milk"}});
        self.show(EXECUTE, call).await?;
        self.rest().await
    }

    async fn rest(&self) -> anyhow::Result<()> {
        self.title("A long result is cut and stored; the rest is read by its handle");
        let call = json!({"tool_name": "notes/list_examples", "tool_input": {"count": 400}});
        let reply = self.show(EXECUTE, call).await?;
        self.read_on(&reply.printable()).await?;
        self.title("The crash of the server is reported; the next call starts it again");
        self.show(
            EXECUTE,
            json!({"tool_name": "notes/crash", "tool_input": {}}),
        )
        .await?;
        let call = json!({"tool_name": "notes/search_notes", "tool_input": {"query": "milk"}});
        self.show(EXECUTE, call).await?;
        self.title("A search without a matching tool reports that");
        self.show(SEARCH, json!({"query": "book a flight to Tokyo"}))
            .await?;
        self.saving().await
    }

    async fn reindex(&self) -> anyhow::Result<()> {
        self.title("The server is asked for its tools, once: proxy reindex");
        let chosen = survey::choose(&self.gateway.catalog, &[]).unwrap_or_default();
        let asked: Vec<_> =
            survey::survey(&self.gateway.catalog, chosen, gateway::count_definition)
                .collect()
                .await;
        let news: Vec<_> = asked.into_iter().map(|asked| asked.news).collect();
        if let Some(Err(why)) = news.iter().map(|news| &news.outcome).find(|it| it.is_err()) {
            anyhow::bail!("the demo's server: {why}");
        }
        for planned in survey::commit(&self.gateway.catalog, news, false).await? {
            let tools = planned.plan.added.len();
            (self.say)(&format!("{} {tools} tools", planned.server));
        }
        Ok(())
    }

    fn title(&self, text: &str) {
        (self.say)(&format!("\n# {text}"));
    }

    async fn show(&self, tool: &str, arguments: Value) -> anyhow::Result<ToolReply> {
        (self.say)(&format!("> {tool} {arguments}"));
        let raw = RawValue::from_string(arguments.to_string())?;
        let reply = self
            .gateway
            .call_tool(tool, Some(&raw), CallContext::default())
            .await;
        let reply = reply.context("one of our own tools is missing")?;
        (self.say)(&excerpt(&reply.printable()));
        Ok(reply)
    }

    /// Reads the next part of a result that was cut, as its footer says.
    async fn read_on(&self, answer: &str) -> anyhow::Result<()> {
        let call = answer.rsplit_once("More: execute_dynamic_tool ");
        let call = call.and_then(|(_, call)| call.split(" or ").next());
        if let Some(call) = call {
            self.show(EXECUTE, serde_json::from_str(call)?).await?;
        }
        Ok(())
    }

    async fn saving(&self) -> anyhow::Result<()> {
        self.title("The tokens that this saves: proxy servers --tokens");
        let generation = self.gateway.catalog.generation().await?;
        let theirs: usize = gateway::list_offered(&generation)
            .map(|entry| gateway::count_definition(entry.tool.json()))
            .sum();
        let catalog = self.gateway.catalog.registry.catalog();
        let client = ClientPolicy::default();
        let ours =
            gateway::count_ours() + tokens::count(&instructions(&catalog, &client, &[], &[], None));
        (self.say)(&format!(
            "{} tools loaded up front cost {} tokens in every session;\n\
             the three tools of proxy cost {}.\n\
             With real servers the first number is tens of thousands; the second stays the same.",
            gateway::list_offered(&generation).count(),
            group_digits(theirs),
            group_digits(ours),
        ));
        (self.say)(
            "\nNext: list your own servers in a configuration (config/developer.toml is an\n\
             example), run `proxy reindex`, and give your client one entry, for example:\n\
             claude mcp add proxy -- tool-proxy serve",
        );
        Ok(())
    }
}

/// The first lines of an answer and its last, each of a length that a terminal shows.
fn excerpt(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(shorten_line).collect();
    if lines.len() <= LINES_SHOWN {
        return lines.join("\n");
    }
    let head = lines[..LINES_SHOWN - 2].join("\n");
    let left_out = lines.len() - (LINES_SHOWN - 1);
    format!(
        "{head}\n  ({left_out} more lines in this demo's answer)\n{}",
        lines[lines.len() - 1]
    )
}

const LINE_CHARS_SHOWN: usize = 400;

fn shorten_line(line: &str) -> String {
    let first = printable::first_chars(line, LINE_CHARS_SHOWN);
    match line[first.len()..].chars().count() {
        0 => line.to_owned(),
        left_out => format!("{first} ({left_out} more characters)"),
    }
}
