//! Calls routes of the API.

use std::sync::Arc;

use daemon::page::PageDaemon;
use hyper::Method;
use tokio_util::sync::CancellationToken;

use crate::{
    api,
    configure::Configure,
    error::ApiError,
    page_state::PageState,
    reply::Reply,
    routes::{Arrived, Route, RouteTable, find_route},
};

/// The API of a daemon.
pub(crate) struct Caller {
    pub(crate) state: Arc<PageState>,
    pub(crate) routes: Vec<Route>,
}

impl Caller {
    pub(crate) fn new(daemon: PageDaemon, configure: Arc<dyn Configure>) -> Self {
        let mut table = RouteTable::default();
        api::add_routes(&mut table);
        Self {
            state: Arc::new(PageState::new(daemon, configure)),
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
}
