//! Calls routes of the API: for pages, and for commands over the daemon's socket or in their own process.

use std::sync::Arc;

use daemon::page::{ApiRequest, PageDaemon};
use gateway::shell::ShellReply;
use hyper::Method;
use tokio_util::sync::CancellationToken;

use crate::{
    api,
    configure::Configure,
    error::{ApiError, ErrorBody},
    openapi,
    page_state::PageState,
    reply::Reply,
    routes::{Arrived, Route, RouteTable, find_route},
};

/// The API of a daemon, or of a command.
pub(crate) struct Caller {
    pub(crate) state: Arc<PageState>,
    pub(crate) routes: Vec<Route>,
}

impl Caller {
    pub(crate) fn new(daemon: PageDaemon, configure: Arc<dyn Configure>) -> Self {
        let mut table = RouteTable::default();
        api::add_routes(&mut table);
        let openapi = openapi::describe(&mut table);
        Self {
            state: Arc::new(PageState::new(daemon, configure, openapi)),
            routes: table.list,
        }
    }

    /// Calls a route. `gone` is cancelled when its caller may use the API no longer.
    pub(crate) async fn call(
        &self,
        method: &Method,
        (path, query): (&str, &str),
        body: Vec<u8>,
        gone: CancellationToken,
    ) -> Result<Reply, ApiError> {
        let (route, values) = find_route(&self.routes, method, path)?;
        let arrived = Arrived {
            page: Arc::clone(&self.state),
            path: values,
            query: query.to_owned(),
            body,
            gone,
        };
        (route.run)(arrived).await
    }

    /// Answers a request of a command: JSON, with `is_hit` for a success.
    pub(crate) async fn answer(&self, request: ApiRequest) -> ShellReply {
        let method = Method::from_bytes(request.method.as_bytes()).unwrap_or_default();
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let body = request.body.to_string().into_bytes();
        let gone = CancellationToken::new();
        let reply = match Box::pin(self.call(&method, (path, query), body, gone)).await {
            Ok(Reply::Json(json)) => Ok(json),
            Ok(Reply::Live(_)) => Err(ApiError::bad("the stream is for pages")),
            Err(error) => Err(error),
        };
        let is_hit = reply.is_ok();
        let data = reply
            .unwrap_or_else(|error| serde_json::to_vec(&ErrorBody { error }).unwrap_or_default());
        ShellReply {
            data: String::from_utf8(data).unwrap_or_default(),
            told: String::new(),
            is_hit,
        }
    }
}
