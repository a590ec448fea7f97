//! Requests of commands to the API: to that of the daemon, if one runs; else to the same API in this process.

use std::sync::Arc;

use anyhow::bail;
use config::Config;
use daemon::{
    page::{ApiRequest, PageDaemon, ServePage as _},
    reach::Route,
    shell::ask_api,
};
use gateway::Gateway;
use page::Page;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use url::form_urlencoded::Serializer;

use super::{report_first_survey, route::find_route, with_config};
use crate::{
    cli::global::Global, event_loop::run_async, exit::Exit, node::open_gateway,
    page_editor::PageEditor, report, signals::watch_signals,
};

/// The API for one command.
pub(super) struct Api {
    global: Global,
    config: Config,
    route: Option<Route>,
    /// The gateway of this process; once it is open, no daemon is asked.
    here: Option<(Arc<Gateway>, Page)>,
}

/// An answer of the API: as it was sent, and as its type.
pub(super) struct Answer<T> {
    pub(super) json: Value,
    pub(super) value: T,
}

/// An error of the API.
#[derive(Debug, Deserialize)]
pub(super) struct ApiFailure {
    code: String,
    message: String,
    next_step: Option<String>,
}

#[derive(Deserialize)]
struct ErrorBody {
    error: ApiFailure,
}

impl ApiFailure {
    /// Prints the error.
    pub(super) fn say(&self) {
        let Self {
            code,
            message,
            next_step,
        } = self;
        let next = next_step.as_deref();
        // The text of a tool error begins with its code.
        let text = if message.starts_with(code.as_str()) {
            let next = next.map(|it| format!("\n{it}"));
            format!("{message}{}", next.unwrap_or_default())
        } else {
            let next = next.map(|it| format!("\nhint: {it}"));
            format!("error: {message}{}", next.unwrap_or_default())
        };
        report::say(&text);
    }
}

/// Runs a command that asks the API.
pub(super) fn with_api(
    global: &Global,
    act: impl AsyncFnOnce(&mut Api) -> anyhow::Result<Exit>,
) -> anyhow::Result<Exit> {
    with_config(global, |config| {
        run_async(async {
            let stop = CancellationToken::new();
            watch_signals(&stop)?;
            let mut api = Api {
                global: global.clone(),
                config,
                route: find_route(global).ok().and_then(Result::ok),
                here: None,
            };
            let done = stop.run_until_cancelled(Box::pin(act(&mut api))).await;
            if let Some((gateway, _)) = api.here {
                gateway.stop().await;
            }
            done.unwrap_or_else(|| bail!("interrupted"))
        })?
    })
}

impl Api {
    /// Sends a request.
    pub(super) async fn ask<T: DeserializeOwned>(
        &mut self,
        request: ApiRequest,
    ) -> anyhow::Result<Result<Answer<T>, ApiFailure>> {
        let reply = match self.ask_daemon(&request).await? {
            Some(reply) => reply,
            None => {
                let (gateway, page) = self.open()?;
                let daemon = PageDaemon::of_command(Arc::clone(gateway));
                page.answer(daemon, request).await
            }
        };
        if !reply.is_hit {
            return Ok(Err(serde_json::from_str::<ErrorBody>(&reply.data)?.error));
        }
        let json: Value = serde_json::from_str(&reply.data)?;
        let value = T::deserialize(&json)?;
        Ok(Ok(Answer { json, value }))
    }

    /// Sends a request to the daemon alone; `None` if none runs.
    pub(super) async fn ask_daemon(
        &self,
        request: &ApiRequest,
    ) -> anyhow::Result<Option<gateway::shell::ShellReply>> {
        match &self.route {
            Some(route) if self.here.is_none() => Ok(ask_api(&route.place, request).await?),
            _ => Ok(None),
        }
    }

    fn open(&mut self) -> anyhow::Result<&(Arc<Gateway>, Page)> {
        if self.here.is_none() {
            let (gateway, _) = open_gateway(&self.config, false)?;
            let page = Page::new(Arc::new(PageEditor::new(&self.global)));
            self.here = Some((gateway, page));
        }
        Ok(self.here.as_ref().expect("it was set right above"))
    }

    /// Prints the servers that this process asks for their tools for the first time, if it does.
    pub(super) async fn report_first_survey(&mut self) -> anyhow::Result<()> {
        let request = ApiRequest::get("/api/v1/status");
        if self.ask_daemon(&request).await?.is_none() {
            report_first_survey(&self.open()?.0);
        }
        Ok(())
    }
}

/// Returns a path with the members that have a value.
pub(super) fn path(path: &str, members: &[(&str, Option<String>)]) -> String {
    let mut query = Serializer::new(String::new());
    for (name, value) in members {
        if let Some(value) = value {
            query.append_pair(name, value);
        }
    }
    format!("{path}?{}", query.finish())
}
