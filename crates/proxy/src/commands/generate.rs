//! `proxy generate`: shell completions and manual pages, generated from the command line.

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

/// Print shell completions or manual pages
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
