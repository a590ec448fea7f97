//! `proxy generate`: shell completions and manual pages, generated from the command line; a text for
//! the instructions of agents.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use clap::Subcommand;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::{cli::complete, exit::Exit, report};

const COMPLETIONS: &str = "\
Examples:
  echo 'source <(proxy generate completions bash)' >> ~/.bashrc
  echo 'source <(proxy generate completions zsh)' >> ~/.zshrc
  proxy generate completions fish > ~/.config/fish/completions/proxy.fish";

const SNIPPET_EXAMPLE: &str = "\
Example:
  proxy generate snippet >> AGENTS.md";

/// The text for agents whose client does not show a model the instructions of MCP servers.
const SNIPPET: &str = "\
## Tools
When a task needs a service, data or action beyond your built-in tools, call `search_tools` of the MCP \
server `proxy` first, then `execute_dynamic_tool`. Never guess a tool name.";

/// Print shell completions, manual pages or a text for agents
#[derive(Debug, Subcommand)]
pub(crate) enum GenerateAction {
    /// Print a script that completes commands, servers and tools
    #[command(after_help = COMPLETIONS)]
    Completions {
        /// Shell that runs the script
        shell: Shell,
    },
    /// Print the manual page, or write a page for each command
    Man {
        /// Folder for a page of each command [default: print one page]
        #[arg(value_name = "FOLDER")]
        folder: Option<PathBuf>,
    },
    /// Print a text for CLAUDE.md or AGENTS.md that says when to use proxy
    #[command(after_help = SNIPPET_EXAMPLE)]
    Snippet,
}

impl GenerateAction {
    /// `command` is the command line with clap's own help template.
    pub(crate) fn run(self, command: clap::Command) -> anyhow::Result<Exit> {
        match self {
            Self::Completions { shell } => {
                let mut script = Vec::new();
                complete::write_registration(shell, &mut script)?;
                report::print_data(&String::from_utf8(script)?);
                Ok(Exit::Success)
            }
            Self::Man { folder } => print_manual(command, folder.as_deref()),
            Self::Snippet => {
                report::print_data(SNIPPET);
                Ok(Exit::Success)
            }
        }
    }
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
