//! The options that every command has.

use std::path::PathBuf;

use clap::Args;
use config::{Config, ConfigError, Environment, Overrides};

use crate::logging::filter_ours;

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    #[arg(long, global = true, value_name = "FILE")]
    #[arg(help = "Configuration file [env: PROXY_CONFIG]")]
    config: Option<PathBuf>,
    #[arg(long, global = true, value_name = "FOLDER")]
    #[arg(help = "State folder [env: PROXY_STATE_DIR]")]
    state_dir: Option<PathBuf>,
    #[arg(long, global = true, value_name = "FILTER")]
    #[arg(help = "Log filter: `info,fleet=debug` [env: PROXY_LOG]")]
    log: Option<String>,
    /// Log more: -v events, -vv details
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Print only JSON on stdout
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Show no progress bar
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
}

impl Global {
    /// The flags with these paths.
    #[cfg(test)]
    pub(crate) fn with_paths(config: PathBuf, state_dir: PathBuf) -> Self {
        Self {
            config: Some(config),
            state_dir: Some(state_dir),
            ..Self::default()
        }
    }

    pub(crate) fn load(&self) -> Result<Config, ConfigError> {
        config::load(&self.overrides(), &Environment::of_process())
    }

    pub(crate) fn overrides(&self) -> Overrides {
        let verbose = match self.verbose {
            0 => None,
            1 => Some(filter_ours("info")),
            _ => Some(filter_ours("debug")),
        };
        Overrides {
            config: self.config.clone(),
            state_dir: self.state_dir.clone(),
            log: self.log.clone().or(verbose),
        }
    }
}
