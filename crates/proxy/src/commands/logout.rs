//! `proxy logout`.

use clap::Args;
use clap_complete::ArgValueCompleter;
use oauth::log_out;

use super::{
    caller::find_former_caller,
    load_config,
    login::{find_place, find_server},
};
use crate::{
    cli::{complete::complete_servers, global::Global},
    event_loop::run_async,
    exit::Exit,
    logging::start_log,
    report,
};

/// Log out of remote servers
#[derive(Debug, Args)]
pub(crate) struct LogoutArgs {
    /// Remote servers of the configuration
    #[arg(required = true, value_name = "SERVER", add = ArgValueCompleter::new(complete_servers))]
    servers: Vec<String>,
    /// Caller over HTTP whose own login ends: the name of a token, or the subject of an OAuth token
    #[arg(long = "for", value_name = "CALLER")]
    caller: Option<String>,
    /// Also delete the registration of this client
    #[arg(long)]
    forget: bool,
}

impl LogoutArgs {
    /// The local login is removed whatever the authorization server answers.
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Exit> {
        start_log("error");
        let config = load_config(global)?;
        let settings = &config.gateway;
        let caller = self.caller.as_deref();
        let caller = caller
            .map(|it| find_former_caller(&config, it))
            .transpose()?;
        run_async(async {
            let mut exit = Exit::Success;
            for name in &self.servers {
                let server = find_server(settings, name)?;
                let Some(place) = find_place(settings, server).await else {
                    exit = Exit::Nothing;
                    continue;
                };
                let file = match &caller {
                    Some(caller) => place.file.of_caller(caller),
                    None => place.file,
                };
                let told = log_out(&file, &place.settings, self.forget).await?;
                report::say(&match told {
                    Ok(true) => format!("{name}: logged out"),
                    Ok(false) => format!("{name}: there was no login"),
                    Err(error) => format!(
                        "{name}: logged out here, but not at its authorization server: {error}"
                    ),
                });
            }
            Ok(exit)
        })?
    }
}
