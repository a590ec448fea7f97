//! `proxy generate`: manual pages, generated from the command line; entries of clients; a text for the
//! instructions of agents.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use clap::{Subcommand, ValueEnum};
use clap_mangen::Man;

use config::{Config, edit::Document};
use setup::leaving::{Entries, write_entries};

use super::{moving::say_all, with_config};
use crate::{cli::global::Global, exit::Exit, report};

const SNIPPET_EXAMPLE: &str = "\
Example:
  proxy generate snippet >> AGENTS.md";

/// The text for agents whose client does not show a model the instructions of MCP servers.
const SNIPPET: &str = "\
## Tools
When a task needs a service, data or action beyond your built-in tools, call `search_tools` of the MCP \
server `proxy` first, then `execute_dynamic_tool`. Never guess a tool name.";

const ENTRIES: &str = "\
Examples:
  proxy generate entries > .mcp.json
  proxy generate entries --format toml >> ~/.codex/config.toml";

/// Print manual pages, client entries, a text for agents
#[derive(Debug, Subcommand)]
pub(crate) enum GenerateAction {
    /// Print the manual page, or write a page for each command
    Man {
        /// Folder for a page of each command [default: print one page]
        #[arg(value_name = "FOLDER")]
        folder: Option<PathBuf>,
    },
    /// Print a text for CLAUDE.md or AGENTS.md that says when to use proxy
    #[command(after_help = SNIPPET_EXAMPLE)]
    Snippet,
    /// Print the enabled servers as a client lists them
    ///
    /// A secret is printed as a variable. Stderr names what has no counterpart.
    #[command(after_help = ENTRIES)]
    Entries {
        /// Form of the entries
        #[arg(long, value_enum, default_value_t = EntryFormat::Json)]
        format: EntryFormat,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum EntryFormat {
    /// `mcpServers`, for Claude, Cursor and most clients
    #[value(alias = "claude")]
    Json,
    /// `mcp_servers`, for Codex
    #[value(alias = "codex")]
    Toml,
}

impl GenerateAction {
    /// `command` is the command line with clap's own help template.
    pub(crate) fn run(self, global: &Global, command: clap::Command) -> anyhow::Result<Exit> {
        match self {
            Self::Man { folder } => print_manual(command, folder.as_deref()),
            Self::Snippet => {
                report::print_data(SNIPPET);
                Ok(Exit::Success)
            }
            Self::Entries { format } => {
                with_config(global, |config| print_entries(&config, format))
            }
        }
    }
}

fn print_entries(config: &Config, format: EntryFormat) -> anyhow::Result<Exit> {
    let document = Document::read(&config.file)?;
    let Entries { text, remarks } =
        write_entries(config, &document, matches!(format, EntryFormat::Toml));
    report::print_data(text.trim_end());
    say_all(&remarks);
    Ok(Exit::Success)
}

/// Prints one page to stdout; or writes, into a folder, one for the program and one for each command.
fn print_manual(command: clap::Command, folder: Option<&Path>) -> anyhow::Result<Exit> {
    let Some(folder) = folder else {
        let mut page = Vec::new();
        Man::new(command).render(&mut page)?;
        report::print_data(&String::from_utf8(page)?);
        return Ok(Exit::Success);
    };
    fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(command, folder))
        .with_context(|| format!("cannot write into {}", folder.display()))?;
    Ok(Exit::Success)
}

#[cfg(test)]
mod tests {
    /// It is part of every request that an agent sends.
    const SNIPPET_TOKENS_MAX: usize = 60;

    #[test]
    fn the_text_for_agents_is_short_and_names_the_tools() {
        let tokens = excerpt::tokens::count(super::SNIPPET);
        assert!(tokens <= SNIPPET_TOKENS_MAX, "{tokens} tokens");
        for tool in [gateway::SEARCH, gateway::EXECUTE] {
            assert!(super::SNIPPET.contains(tool));
        }
    }
}
