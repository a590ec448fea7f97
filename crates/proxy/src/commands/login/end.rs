//! `proxy login --end`.

use oauth::log_out;

use super::{LoginArgs, find_place, find_server};
use crate::{
    cli::global::Global,
    commands::{caller::find_former_caller, load_config},
    event_loop::run_async,
    exit::Exit,
    report,
};

/// Logs out of the servers. The local login is removed whatever the authorization server answers.
pub(super) fn log_out_of(global: &Global, login: &LoginArgs) -> anyhow::Result<Exit> {
    let config = load_config(global)?;
    let settings = &config.gateway;
    let caller = login.caller.as_deref();
    let caller = caller
        .map(|it| find_former_caller(&config, it))
        .transpose()?;
    run_async(async {
        let mut exit = Exit::Success;
        for name in &login.servers {
            let server = find_server(settings, name)?;
            let Some(place) = find_place(settings, server).await else {
                exit = Exit::Nothing;
                continue;
            };
            let file = match &caller {
                Some(caller) => place.file.of_caller(caller),
                None => place.file,
            };
            let ended = log_out(&file, &place.settings, login.forget).await?;
            report::say(&match ended {
                Ok(true) => format!("{name}: logged out"),
                Ok(false) => format!("{name}: there was no login"),
                Err(error) => {
                    format!("{name}: logged out here, but not at its authorization server: {error}")
                }
            });
        }
        Ok(exit)
    })?
}
