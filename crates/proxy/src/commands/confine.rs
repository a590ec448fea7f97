//! `proxy confine`: drops the rights that a server may not have, then becomes the server.

use std::os::unix::process::CommandExt as _;

use anyhow::Context as _;
use processes::sandbox::Kept;

use crate::{cli::Confine, exit::Exit};

/// Returns only if it fails. No other thread runs yet, so the restrictions apply to all of the process.
pub(super) fn become_command(confine: Confine) -> anyhow::Result<Exit> {
    let Confine {
        network,
        write,
        command,
    } = confine;
    processes::sandbox::enter(&Kept { network, write })?;
    let mut words = command.into_iter();
    let program = words.next().context("no command")?;
    let error = std::process::Command::new(&program).args(words).exec();
    Err(error).with_context(|| format!("cannot start {}", program.display()))
}
