//! Requests of commands to the API: to that of the daemon, if one runs; else to the same API in this process.

use std::sync::Arc;

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
use url::form_urlencoded::Serializer;

use super::{report_first_survey, route::find_route, with_config};
use crate::{
    cli::global::Global, event_loop::run_async, exit::Exit, node::open_gateway,
    page_editor::PageEditor, signals::until_signal,
};

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

#[derive(Deserialize)]
struct ErrorBody {
    error: ApiFailure,
}

#[derive(Deserialize)]
struct ApiFailure {
    code: String,
    message: String,
    next_step: Option<String>,
}

impl ApiFailure {
    fn to_text(&self) -> String {
        // The text of a tool error begins with its code.
        let (before, hint) = if self.message.starts_with(&self.code) {
            ("", "")
        } else {
            ("error: ", "hint: ")
        };
        let next = self.next_step.as_ref().map(|it| format!("\n{hint}{it}"));
        format!("{before}{}{}", self.message, next.unwrap_or_default())
    }
}

pub(super) fn with_api(
    global: &Global,
    act: impl AsyncFnOnce(&mut Api) -> anyhow::Result<Exit>,
) -> anyhow::Result<Exit> {
    with_config(global, |config| {
        run_async(async {
            let mut api = Api {
                global: global.clone(),
                config,
                route: find_route(global).ok().and_then(Result::ok),
                here: None,
            };
            let done = until_signal(act(&mut api)).await;
            if let Some((gateway, _)) = api.here {
                gateway.stop().await;
            }
            done
        })?
    })
}

impl Api {
    /// Sends a request. An error of the API ends the command with the outcome `failed`.
    pub(super) async fn ask<T: DeserializeOwned>(
        &mut self,
        request: ApiRequest,
        failed: Exit,
    ) -> anyhow::Result<Answer<T>> {
        let reply = match self.ask_daemon(&request).await? {
            Some(reply) => reply,
            None => {
                let (gateway, page) = self.open()?;
                let daemon = PageDaemon::of_command(Arc::clone(gateway));
                page.answer(daemon, request).await
            }
        };
        if !reply.is_hit {
            let body: ErrorBody = serde_json::from_str(&reply.data)?;
            return Err(failed.with(body.error.to_text()));
        }
        let json: Value = serde_json::from_str(&reply.data)?;
        let value = T::deserialize(&json)?;
        Ok(Answer { json, value })
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
