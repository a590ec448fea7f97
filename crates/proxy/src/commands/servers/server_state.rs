//! The stored state of a server, when the server is renamed.

use std::io;

use anyhow::Context as _;
use oauth::RenamedLogins;
use registry::{Registry, Rules};
use secrets::PrivateFiles;
use tool::ServerName;

use crate::{cli::global::Global, report};

pub(super) struct ServerState {
    registry: Registry,
    files: PrivateFiles,
    from: ServerName,
    to: ServerName,
}

impl ServerState {
    /// Opens the state of the configuration, which must be valid: it may set the path of the state.
    pub(super) fn open(global: &Global, from: ServerName, to: ServerName) -> anyhow::Result<Self> {
        let config = global
            .load()
            .context("the state of the server cannot be found, so nothing was changed")?;
        Ok(Self {
            registry: Registry::open(&config.gateway.state_dir, Rules::default())?,
            files: config.gateway.private_files(),
            from,
            to,
        })
    }

    /// Writes the configuration while the state is stored under both names: so neither a crash nor a
    /// running daemon ever sees the new name without its pins.
    pub(super) fn rename(&self, write: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        let (registry, from, to) = (&self.registry, &self.from, &self.to);
        registry.adopt_server(from, to).map_err(io::Error::other)?;
        let logins = match self.write_with_logins(write) {
            Ok(logins) => logins,
            Err(error) => {
                // Removes the state of the new name.
                registry.finish_rename(to, from).map_err(io::Error::other)?;
                return Err(error);
            }
        };
        let finished = logins.finish().map_err(anyhow::Error::from);
        if let Err(error) = finished.and_then(|()| Ok(registry.finish_rename(from, to)?)) {
            report::say(&format!(
                "warning: the state of `{from}` was not removed: {error}"
            ));
        }
        Ok(())
    }

    fn write_with_logins(
        &self,
        write: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<RenamedLogins> {
        let (from, to) = (self.from.as_str(), self.to.as_str());
        let logins = RenamedLogins::copy(&self.files, from, to).map_err(io::Error::other)?;
        if let Err(error) = write() {
            logins.undo()?;
            return Err(error);
        }
        Ok(logins)
    }
}
