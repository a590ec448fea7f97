//! Runs command-line programs: each call of a tool is one process, which ends with its call.

use std::{path::Path, sync::Arc};

use futures::{FutureExt as _, future::BoxFuture};
use jsonrpc::{Json, ProtocolError};
use processes::Pace;
use serde_json::{Map, Value, json};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    CommandSet, CommandTool, Failure, Launch, Request, ServerSpec, Surroundings, Template,
    Variables,
    child::{Finished, Running},
    connection::Connection,
    environment::expand,
    error::RequestError,
    request::Origin,
    updates::Updates,
};

/// The connection to the server of all commands. It has no process of its own.
pub(crate) struct CommandRunner {
    pub(crate) set: CommandSet,
    pub(crate) spec: ServerSpec,
    pub(crate) variables: Variables,
    pub(crate) surroundings: Arc<Surroundings>,
    pub(crate) updates: Updates,
    pub(crate) closed: CancellationToken,
    pub(crate) calls: TaskTracker,
}

impl CommandRunner {
    /// Runs a tool. The process ends when the returned future is dropped.
    async fn call(&self, request: &Request) -> Result<Json, RequestError> {
        let name = request.param("name").map_or("", Json::as_str);
        let name: String = serde_json::from_str(name).unwrap_or_default();
        let Some(tool) = self.set.tools.iter().find(|it| it.name == name) else {
            return Err(refuse("-32602", format!("there is no command `{name}`")));
        };
        let (running, stdin) = match self.start(tool, request) {
            Ok(started) => started,
            Err(failure) => {
                let hint = failure.hint.as_deref().unwrap_or_default();
                let text = format!("`{}` was not run: {failure}\n{hint}", tool.name);
                return Ok(make_result(text.trim_end(), true));
            }
        };
        let cancel = self.closed.child_token();
        let _guard = cancel.clone().drop_guard();
        match self.calls.spawn(run(running, stdin, cancel)).await {
            Ok(Some(finished)) => Ok(tool.describe(&finished)),
            _ => Err(RequestError::Lost(None)),
        }
    }

    fn start(
        &self,
        tool: &CommandTool,
        request: &Request,
    ) -> Result<(Running, Option<String>), Failure> {
        let arguments = request.param("arguments").map_or("{}", Json::as_str);
        let arguments: Map<String, Value> =
            serde_json::from_str(arguments).map_err(|error| Failure::new(error.to_string()))?;
        let (words, stdin) = tool.fill(&arguments).map_err(Failure::new)?;
        let stdin = stdin.map(|text| expand(&text, &self.variables));
        let stdin = stdin.transpose()?;
        let folder = request.client.as_ref().and_then(|it| it.folder.as_deref());
        let folder = folder.map(Path::to_owned).or_else(std::env::home_dir);
        // A container has folders of its own.
        let folder = folder.filter(|_| self.spec.image.is_none());
        let folder = folder.and_then(|it| Some(Template::literal(it.to_str()?)));
        let spec = self.set.program(&self.spec, tool, words, folder);
        let running = Running::start(&spec, &self.variables, &self.surroundings, stdin.is_some())?;
        Ok((running, stdin))
    }
}

/// Waits for the end of a program, and ends what is left of it. `None` if it was cancelled.
async fn run(
    mut running: Running,
    stdin: Option<String>,
    cancel: CancellationToken,
) -> Option<Finished> {
    let finished = cancel.run_until_cancelled(running.finish(stdin)).await;
    running.stop(Pace::Hurried).await;
    finished
}

impl CommandSet {
    /// Returns each program as a server would be started.
    pub(crate) fn programs(&self, spec: &ServerSpec) -> Vec<ServerSpec> {
        let one = |tool| self.program(spec, tool, Vec::new(), None);
        self.tools.iter().map(one).collect()
    }

    fn program(
        &self,
        spec: &ServerSpec,
        tool: &CommandTool,
        args: Vec<Template>,
        folder: Option<Template>,
    ) -> ServerSpec {
        let launch = Launch::Child {
            command: tool.program.clone(),
            args,
            env: self.env.clone(),
            cwd: self.cwd.clone().or(folder),
        };
        ServerSpec {
            launch,
            ..spec.clone()
        }
    }
}

impl CommandTool {
    fn describe(&self, finished: &Finished) -> Json {
        let Finished { output, code, .. } = finished;
        let is_ok = |code| self.ok_codes.contains(&code) || self.ok_codes.is_empty() && code == 0;
        if code.is_none_or(is_ok) {
            return make_result(output, false);
        }
        let mut text = format!("`{}`: {}", self.name, finished.end);
        for (name, part) in [("stderr", &finished.stderr), ("stdout", output)] {
            if !part.is_empty() {
                text = format!("{text}\n{name}:\n{part}");
            }
        }
        make_result(&text, true)
    }
}

fn make_result(text: &str, is_error: bool) -> Json {
    let content = match text {
        "" => json!([]),
        text => json!([{"type": "text", "text": text}]),
    };
    Json::of_built(json!({"content": content, "isError": is_error}).to_string())
}

fn refuse(code: &str, message: String) -> RequestError {
    RequestError::Protocol(ProtocolError {
        code: code.to_owned(),
        message,
        data: None,
    })
}

impl Connection for CommandRunner {
    fn request<'a>(
        &'a self,
        request: &'a Request,
        _: Origin,
    ) -> BoxFuture<'a, Result<Json, RequestError>> {
        async move {
            match request.method {
                "tools/list" => {
                    let tools = self.set.tools.iter().map(|it| it.listed.clone());
                    let list = json!({"tools": tools.collect::<Vec<_>>()});
                    Ok(Json::of_built(list.to_string()))
                }
                "tools/call" => self.call(request).await,
                method => Err(refuse("-32601", format!("commands have no `{method}`"))),
            }
        }
        .boxed()
    }

    fn updates(&self) -> &Updates {
        &self.updates
    }

    fn has_ended(&self) -> bool {
        self.closed.is_cancelled()
    }

    fn ended(&self) -> BoxFuture<'_, ()> {
        self.closed.cancelled().boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.closed.cancel();
        self.calls.close();
        async { self.calls.wait().await }.boxed()
    }
}
