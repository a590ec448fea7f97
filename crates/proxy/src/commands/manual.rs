//! `proxy man`: the manual pages, generated from the command line.

use std::{fs, path::Path};

use anyhow::Context as _;
use clap_mangen::Man;

use crate::{cli, exit::Exit, report};

/// Prints one page to stdout; or writes, into a folder, one for the program and one for each command.
pub(super) fn print_manual(folder: Option<&Path>) -> anyhow::Result<Exit> {
    let Some(folder) = folder else {
        let mut page = Vec::new();
        Man::new(cli::command_for_manual()).render(&mut page)?;
        report::print_data(&String::from_utf8(page)?);
        return Ok(Exit::Success);
    };
    fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(cli::command_for_manual(), folder))
        .with_context(|| format!("cannot write into {}", folder.display()))?;
    Ok(Exit::Success)
}
