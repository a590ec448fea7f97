//! `proxy confine`: drops the rights that a server may not have, then becomes the server.

use std::{ffi::OsString, path::PathBuf, process::Command};

use anyhow::Context as _;
use clap::Args;
use processes::sandbox::Permissions;

use crate::exit::Exit;

/// Starts a server that has a `sandbox` (started by every proxy that has such a server)
#[derive(Debug, Args)]
pub(crate) struct ConfineArgs {
    #[arg(long)]
    network: bool,
    #[arg(long, value_name = "PATH")]
    write: Vec<PathBuf>,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

impl ConfineArgs {
    /// Returns only if it fails. No other thread runs yet, so the restrictions apply to all of the
    /// process.
    pub(crate) fn become_command(self) -> anyhow::Result<Exit> {
        let (network, write) = (self.network, self.write);
        processes::sandbox::enter(&Permissions { network, write })?;
        let mut words = self.command.into_iter();
        let program = words.next().context("no command")?;
        let error = processes::become_program(Command::new(&program).args(words));
        Err(error).with_context(|| format!("cannot start {}", program.display()))
    }
}
