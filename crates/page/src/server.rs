//! Serves the page on a loopback port of its own.

use std::sync::Arc;

use daemon::page::{PageDaemon, ServePage};
use futures::future::{BoxFuture, join};
use http_core::{Arrival, Guard, Handler, Server, Serving, bearer, check_is_json, read_body};
use hyper::{Method, Request, Response, body::Incoming, http::request::Parts};
use tokio::{sync::Mutex, time::interval};
use tokio_util::sync::CancellationToken;

use crate::{
    assets::{self, INDEX},
    caller::Caller,
    configure::Configure,
    error::ApiError,
    guard::{API, check},
    kept_port::KeptPort,
    limits::{BODY_BYTES_MAX, CONNECTIONS, TABS_NOTED_EVERY},
    reply::{Body, Reply, asset, respond},
    routes::{SESSION, find_route},
};

/// The file with the port, in the state folder.
const PORT_FILE: &str = "page.port";

/// The page of a daemon. It is served from the first time that somebody opens it, or from the start if tabs
/// of the daemon before are open.
pub struct Page {
    configure: Arc<dyn Configure>,
    served: Mutex<Option<Arc<ServedPage>>>,
}

/// A page that is served.
struct ServedPage {
    caller: Arc<Caller>,
    guard: Guard,
    url: String,
}

impl std::fmt::Debug for Page {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Page").finish_non_exhaustive()
    }
}

impl Page {
    /// Makes a page that changes the configuration by `configure`. Listens only when it is opened.
    pub fn new(configure: Arc<dyn Configure>) -> Self {
        Self {
            configure,
            served: Mutex::default(),
        }
    }

    async fn serve(&self, daemon: PageDaemon) -> anyhow::Result<Arc<ServedPage>> {
        let mut served = self.served.lock().await;
        if let Some(page) = &*served {
            return Ok(Arc::clone(page));
        }
        let kept = kept_port(&daemon);
        let stop = daemon.stop.clone();
        let listener = kept.listen().await?;
        let address = listener.local_addr()?;
        let caller = Arc::new(Caller::new(daemon, Arc::clone(&self.configure)));
        let page = Arc::new(ServedPage {
            caller: Arc::clone(&caller),
            url: format!("http://{address}"),
            guard: Guard::only(address.to_string()),
        });
        tracing::info!(url = page.url, "the web page is served");
        let site = Server::new(Arc::clone(&page), CONNECTIONS, None);
        let noting = note_tabs(caller, kept, address.port());
        let noting = stop.clone().run_until_cancelled_owned(noting);
        tokio::spawn(async move { join(site.accept(&[listener], &stop), noting).await });
        *served = Some(Arc::clone(&page));
        Ok(page)
    }
}

fn kept_port(daemon: &PageDaemon) -> KeptPort {
    KeptPort(daemon.gateway.settings().state_dir.join(PORT_FILE))
}

/// Notes the port at once, and as long as tabs are open.
async fn note_tabs(caller: Arc<Caller>, kept: KeptPort, port: u16) {
    kept.note(port);
    let mut looks = interval(TABS_NOTED_EVERY);
    loop {
        looks.tick().await;
        if caller.state.hub.0.lock().await.is_some() {
            kept.note(port);
        }
    }
}

impl ServePage for Page {
    fn open(&self, daemon: PageDaemon) -> BoxFuture<'_, Result<String, String>> {
        Box::pin(async move {
            let page = self.serve(daemon).await;
            let page =
                page.map_err(|error| format!("error: the page cannot be served: {error:#}"))?;
            let code = page.caller.state.entrance.new_code();
            Ok(format!("{}/#{code}", page.url))
        })
    }

    fn resume(&self, daemon: PageDaemon) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if kept_port(&daemon).read().is_some()
                && let Err(error) = self.serve(daemon).await
            {
                tracing::debug!(%error, "open tabs do not find this daemon");
            }
        })
    }
}

impl Handler for ServedPage {
    type Body = Body;

    async fn answer(
        &self,
        request: Request<Incoming>,
        arrival: Arrival,
        serving: &mut Serving,
    ) -> Response<Body> {
        let (head, body) = request.into_parts();
        if let Err(refusal) = check(&self.guard, &head, arrival.local) {
            return respond(Err(refusal.into()));
        }
        if !head.uri.path().starts_with(API) {
            return respond_with_file(&head);
        }
        let reply = Box::pin(self.call(&head, body)).await;
        if reply.is_ok() {
            serving.admit();
        }
        respond(reply)
    }
}

impl ServedPage {
    /// Answers a request to the API whose names were checked.
    async fn call(&self, head: &Parts, body: Incoming) -> Result<Reply, ApiError> {
        let path = head.uri.path();
        let gone = if path == SESSION && head.method == Method::POST {
            CancellationToken::new()
        } else {
            let token = bearer(&head.headers).ok().flatten();
            let token = token.and_then(|token| self.caller.state.entrance.admit(token));
            token.ok_or_else(|| {
                let why = "the token of this page is missing, wrong or has ended";
                ApiError::unauthorized("unauthorized", why)
            })?
        };
        find_route(&self.caller.routes, &head.method, path)?;
        if head.method != Method::GET {
            check_is_json(&head.headers)?;
        }
        let body = read_body(head, body, BODY_BYTES_MAX, CONNECTIONS.receive_timeout).await?;
        let query = head.uri.query().unwrap_or_default();
        self.caller
            .call(&head.method, (path, query), body.to_vec(), gone)
            .await
    }
}

fn respond_with_file(head: &Parts) -> Response<Body> {
    if ![Method::GET, Method::HEAD].contains(&head.method) {
        return respond(Err(ApiError::method_not_allowed("GET, HEAD")));
    }
    let path = head.uri.path();
    let found = match path {
        "/" => assets::find_name(INDEX),
        _ => path.strip_prefix("/assets/").and_then(assets::find),
    };
    found.map_or_else(
        || respond(Err(ApiError::not_found("there is no such file"))),
        asset,
    )
}
