//! Serves the page on a loopback port of its own.

use std::{convert::Infallible, net::Ipv4Addr, pin::pin, sync::Arc, time::Duration};

use daemon::page::{PageDaemon, ServePage};
use futures::future::BoxFuture;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::{
    Method, Request, Response, StatusCode, body::Incoming, http::request::Parts,
    server::conn::http1, service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Mutex, Semaphore},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    api,
    assets::{self, INDEX},
    configure::Configure,
    error::ApiError,
    guard::{API, Guard, token_of},
    limits::{BODY_BYTES_MAX, CONNECTIONS_MAX, HEAD_BYTES_MAX, RECEIVE_TIMEOUT},
    openapi,
    page_state::PageState,
    reply::{Body, asset, respond},
    routes::{Arrived, RouteTable, Routes, SESSION},
};

/// The delay after a failed `accept`.
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// The time that open connections have to end when the daemon does.
const END_WAIT: Duration = Duration::from_millis(500);

/// The page of a daemon. It is served from the first time that somebody opens it.
pub struct Page {
    configure: Arc<dyn Configure>,
    served: Mutex<Option<Arc<ServedPage>>>,
}

/// A page that is served.
struct ServedPage {
    state: Arc<PageState>,
    guard: Guard,
    routes: Routes,
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
        if let Some(state) = &*served {
            return Ok(Arc::clone(state));
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let state = Arc::new(ServedPage::new(
            daemon,
            Arc::clone(&self.configure),
            listener.local_addr()?.to_string(),
        ));
        tracing::info!(url = state.url, "the web page is served");
        let stop = state.state.daemon.stop.clone();
        let accepting = accept(Arc::clone(&state), listener);
        tokio::spawn(async move { stop.run_until_cancelled(accepting).await });
        *served = Some(Arc::clone(&state));
        Ok(state)
    }
}

impl ServePage for Page {
    fn open(&self, daemon: PageDaemon) -> BoxFuture<'_, Result<String, String>> {
        Box::pin(async move {
            let state = self.serve(daemon).await;
            let state =
                state.map_err(|error| format!("error: the page cannot be served: {error:#}"))?;
            Ok(format!(
                "{}/#{}",
                state.url,
                state.state.entrance.new_code()
            ))
        })
    }
}

async fn accept(state: Arc<ServedPage>, listener: TcpListener) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_REST).await;
            continue;
        };
        // A connection beyond the limit is closed: the browser opens it again.
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            continue;
        };
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            serve_connection(state, stream).await;
            drop(place);
        });
    }
}

async fn serve_connection(state: Arc<ServedPage>, stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let stop = state.state.daemon.stop.clone();
    let answer = service_fn(move |request: Request<Incoming>| {
        let state = Arc::clone(&state);
        async move { Ok::<_, Infallible>(state.answer(request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(RECEIVE_TIMEOUT)
        .max_header_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), answer);
    let mut connection = pin!(connection);
    let served = match stop.run_until_cancelled(connection.as_mut()).await {
        Some(served) => served,
        None => {
            // A stream sends its last line.
            connection.as_mut().graceful_shutdown();
            timeout(END_WAIT, connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a connection to the page ended with an error");
    }
}

impl ServedPage {
    fn new(daemon: PageDaemon, configure: Arc<dyn Configure>, authority: String) -> Self {
        let mut table = RouteTable::default();
        api::add_routes(&mut table);
        let openapi = openapi::describe(&mut table);
        Self {
            state: Arc::new(PageState::new(daemon, configure, openapi)),
            url: format!("http://{authority}"),
            guard: Guard::new(authority),
            routes: table.into_routes(),
        }
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        let (head, body) = request.into_parts();
        if let Err(error) = self.guard.check(&head) {
            return respond(Err(error));
        }
        if head.uri.path().starts_with(API) {
            return respond(Box::pin(self.call(&head, body)).await);
        }
        respond_with_file(&head)
    }

    /// Answers a request to the API whose names were checked.
    async fn call(
        self: Arc<Self>,
        head: &Parts,
        body: Incoming,
    ) -> Result<crate::reply::Reply, ApiError> {
        let path = head.uri.path();
        let gone = if path == SESSION && head.method == Method::POST {
            CancellationToken::new()
        } else {
            let token = token_of(&head.headers);
            let token = token.and_then(|token| self.state.entrance.admit(token));
            token.ok_or_else(|| {
                let why = "the token of this page is missing, wrong or has ended";
                ApiError::unauthorized("unauthorized", why)
            })?
        };
        let page = Arc::clone(&self.state);
        let (route, values) = self.routes.find(&head.method, path)?;
        let arrived = Arrived {
            page,
            path: values,
            query: head.uri.query().unwrap_or_default().to_owned(),
            body: read_body(body).await?,
            gone,
        };
        (route.run)(arrived).await
    }
}

async fn read_body(body: Incoming) -> Result<Vec<u8>, ApiError> {
    let reading = timeout(
        RECEIVE_TIMEOUT,
        Limited::new(body, BODY_BYTES_MAX).collect(),
    );
    match reading.await {
        Ok(Ok(body)) => Ok(body.to_bytes().to_vec()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let why = format!("the body is larger than {BODY_BYTES_MAX} bytes");
            Err(ApiError::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "too_large",
                why,
            ))
        }
        Ok(Err(_)) => Err(ApiError::bad("the body was cut off")),
        Err(_) => {
            let why = "the body did not arrive in time";
            Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, "timeout", why))
        }
    }
}

fn respond_with_file(head: &Parts) -> Response<Body> {
    if ![Method::GET, Method::HEAD].contains(&head.method) {
        let why = "files are read with GET";
        let status = StatusCode::METHOD_NOT_ALLOWED;
        return respond(Err(ApiError::new(status, "method_not_allowed", why)));
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
