//! `proxy completions`.

use clap::Args;
use clap_complete::Shell;

use crate::{cli::complete, exit::Exit, report};

const EXAMPLES: &str = "\
Examples:
  echo 'source <(proxy completions bash)' >> ~/.bashrc
  echo 'source <(proxy completions zsh)' >> ~/.zshrc
  proxy completions fish > ~/.config/fish/completions/proxy.fish";

/// Print a script that completes commands, servers and tools
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// Shell that runs the script
    shell: Shell,
}

impl CompletionsArgs {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let mut script = Vec::new();
        complete::write_registration(self.shell, &mut script)?;
        report::print_data(&String::from_utf8(script)?);
        Ok(Exit::Success)
    }
}
