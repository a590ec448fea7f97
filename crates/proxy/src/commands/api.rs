//! Requests of commands to the API: to that of the daemon, or to that of a gateway in this process.

use std::sync::Arc;

use anyhow::anyhow;
use config::Config;
use daemon::api::{ApiResult, ask_or_start, ask_running};
use gateway::{
    Connection, Gateway,
    api::{ApiError, ApiReply, ApiRequest, CallRequest, SurveyReply, handle_for_command},
};
use tokio_util::sync::CancellationToken;
use tool::ServerName;

use super::{
    report_first_survey,
    route::{explain, find_route},
    with_config,
};
use crate::{
    cli::global::Global, event_loop::run_async, exit::Exit, node::open_gateway, report,
    signals::until_signal,
};

/// The daemon that answers. Without one, a gateway in this process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Daemon {
    /// It is started if none runs.
    Started,
    /// Only one that runs.
    Running,
    /// None.
    Unused,
}

impl Daemon {
    /// Returns the daemon of a command with the option `--standalone`.
    pub(super) fn unless(is_standalone: bool) -> Self {
        if is_standalone {
            Self::Unused
        } else {
            Self::Started
        }
    }
}

pub(super) struct Api {
    global: Global,
    config: Config,
    daemon: Daemon,
    /// The gateway of this process; once it is open, no daemon is asked.
    here: Option<Arc<Gateway>>,
}

pub(super) fn with_api(
    global: &Global,
    daemon: Daemon,
    act: impl AsyncFnOnce(&mut Api) -> anyhow::Result<Exit>,
) -> anyhow::Result<Exit> {
    with_config(global, |config| {
        run_async(async {
            let mut api = Api {
                global: global.clone(),
                config,
                daemon,
                here: None,
            };
            let done = until_signal(act(&mut api)).await;
            if let Some(gateway) = api.here {
                gateway.stop().await;
            }
            done
        })?
    })
}

/// Calls a tool, and prints its result.
pub(super) fn call(global: &Global, daemon: Daemon, request: CallRequest) -> anyhow::Result<Exit> {
    with_api(global, daemon, async |api| {
        api.survey().await?;
        let reply = api.ask(ApiRequest::Call(request), Exit::Nothing).await?;
        let ApiReply::Call(reply) = reply else {
            return Err(explain_reply(&reply));
        };
        match &reply.json {
            Some(json) => report::print_data(json.get()),
            None if reply.text.is_empty() => {}
            None if reply.is_error => report::say(&reply.text),
            None => report::print_data(&reply.text),
        }
        Ok(Exit::of_hit(!reply.is_error))
    })
}

/// Returns the error of a command that got the reply to another request.
pub(super) fn explain_reply(reply: &ApiReply) -> anyhow::Error {
    anyhow!("the API replied with {reply:?}")
}

impl Api {
    /// Sends a request. An error of the API ends the command with the outcome `failed`.
    pub(super) async fn ask(
        &mut self,
        request: ApiRequest,
        failed: Exit,
    ) -> anyhow::Result<ApiReply> {
        let result = match self.ask_daemon(&request).await? {
            Some(result) => result,
            None => self.ask_here(request).await?,
        };
        result.map_err(|error| failed.with(text_of(&error)))
    }

    /// Asks servers that never listed their tools for them. Prints their names, and why some did not answer.
    pub(super) async fn survey(&mut self) -> anyhow::Result<()> {
        self.survey_for(|reply, server| reply.asked.contains(server))
            .await
    }

    /// The same before a list of this server, or of all: prints why any of them could not be asked.
    pub(super) async fn survey_for_list(&mut self, of: Option<&str>) -> anyhow::Result<()> {
        let of = of.map(tool::fold);
        self.survey_for(|_, server| of.as_ref().is_none_or(|of| of == server.as_str()))
            .await
    }

    async fn survey_for(
        &mut self,
        is_meant: impl Fn(&SurveyReply, &ServerName) -> bool,
    ) -> anyhow::Result<()> {
        let result = match self.ask_daemon(&ApiRequest::Survey).await? {
            Some(result) => {
                if let Ok(ApiReply::Survey(SurveyReply { asked, .. })) = &result
                    && !asked.is_empty()
                {
                    let names: Vec<&str> = asked.iter().map(ServerName::as_str).collect();
                    let names = names.join(", ");
                    report::say(&format!(
                        "asked for their tools for the first time: {names}"
                    ));
                }
                result
            }
            None => {
                report_first_survey(self.open()?);
                self.ask_here(ApiRequest::Survey).await?
            }
        };
        let reply = match result.map_err(|error| Exit::Nothing.with(text_of(&error)))? {
            ApiReply::Survey(reply) => reply,
            reply => return Err(explain_reply(&reply)),
        };
        let failures = reply.failures.iter();
        for failure in failures.filter(|it| is_meant(&reply, &it.server)) {
            let (server, why, next) = (&failure.server, &failure.why, &failure.next_step);
            report::say(&format!("{server}: {why}\nhint: {next}"));
        }
        Ok(())
    }

    /// Sends a request to the daemon. `None`: there is none; the reason has been printed, if a daemon is to be
    /// started.
    async fn ask_daemon(&self, request: &ApiRequest) -> anyhow::Result<Option<ApiResult>> {
        if self.here.is_some() || self.daemon == Daemon::Unused {
            return Ok(None);
        }
        let route = find_route(&self.global);
        if self.daemon == Daemon::Running {
            return match route {
                Ok(Ok(route)) => Ok(ask_running(&route.place, request).await?),
                _ => Ok(None),
            };
        }
        let asked = match route {
            Ok(Ok(route)) => {
                let asked = ask_or_start(&route, request).await;
                asked.map_err(|why| report::describe(&explain(why)))
            }
            Ok(Err(error)) => Err(error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        match asked {
            Ok(Some(result)) => Ok(Some(result)),
            // A call may have run: it is not repeated.
            Ok(None) => Err(Exit::Nothing.with(
                "error: the daemon ended before it replied; the request may have run\n\
                 hint: `proxy logs` prints the end of its log",
            )),
            Err(why) => {
                report::say(&format!("without the daemon: {why}"));
                Ok(None)
            }
        }
    }

    async fn ask_here(&mut self, request: ApiRequest) -> anyhow::Result<ApiResult> {
        let connection = Connection {
            cwd: std::env::current_dir().ok().map(Into::into),
            transport: "shell",
            ..Connection::default()
        };
        let gone = CancellationToken::new();
        Ok(handle_for_command(self.open()?, connection, request, gone).await)
    }

    fn open(&mut self) -> anyhow::Result<&Arc<Gateway>> {
        if self.here.is_none() {
            let (gateway, _) = open_gateway(&self.config, false)?;
            self.here = Some(gateway);
        }
        Ok(self.here.as_ref().expect("it was set right above"))
    }
}

/// Returns the text of an error for a terminal.
fn text_of(error: &ApiError) -> String {
    // The text of a tool error begins with its code.
    let (before, hint) = if error.message.starts_with(&*error.code) {
        ("", "")
    } else {
        ("error: ", "hint: ")
    };
    let next = error.next_step.as_ref().map(|it| format!("\n{hint}{it}"));
    format!("{before}{}{}", error.message, next.unwrap_or_default())
}
