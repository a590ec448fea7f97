//! Serves the page on a loopback port of its own.

use std::{
    convert::Infallible,
    pin::pin,
    sync::{Arc, OnceLock},
    time::Duration,
};

use daemon::page::{ApiRequest, PageDaemon, ServePage};
use futures::future::BoxFuture;
use gateway::shell::ShellReply;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::{
    Method, Request, Response, StatusCode, body::Incoming, http::request::Parts,
    server::conn::http1, service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Mutex, Semaphore},
    time::{interval, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    assets::{self, INDEX},
    caller::Caller,
    configure::Configure,
    error::ApiError,
    guard::{API, Guard, check_kind, token_of},
    kept_port::KeptPort,
    limits::{BODY_BYTES_MAX, CONNECTIONS_MAX, HEAD_BYTES_MAX, RECEIVE_TIMEOUT, TABS_NOTED_EVERY},
    reply::{Body, Reply, asset, respond},
    routes::{SESSION, find_route},
};

/// The delay after a failed `accept`.
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// The time that open connections have to end when the daemon does.
const END_WAIT: Duration = Duration::from_millis(500);

/// The file with the port, in the state folder.
const PORT_FILE: &str = "page.port";

/// The page of a daemon. It is served from the first time that somebody opens it, or from the start if tabs
/// of the daemon before are open.
pub struct Page {
    configure: Arc<dyn Configure>,
    caller: OnceLock<Arc<Caller>>,
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
            caller: OnceLock::new(),
            served: Mutex::default(),
        }
    }

    /// Returns the API, which pages and commands share.
    fn caller(&self, daemon: PageDaemon) -> &Arc<Caller> {
        self.caller
            .get_or_init(|| Arc::new(Caller::new(daemon, Arc::clone(&self.configure))))
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
        let caller = Arc::clone(self.caller(daemon));
        let page = Arc::new(ServedPage {
            caller: Arc::clone(&caller),
            url: format!("http://{address}"),
            guard: Guard::new(address.to_string()),
        });
        tracing::info!(url = page.url, "the web page is served");
        let accepting = accept(Arc::clone(&page), listener);
        let noting = note_tabs(caller, kept, address.port());
        let serving = futures::future::join(accepting, noting);
        tokio::spawn(async move { stop.run_until_cancelled(serving).await });
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

    fn answer(&self, daemon: PageDaemon, request: ApiRequest) -> BoxFuture<'_, ShellReply> {
        Box::pin(self.caller(daemon).answer(request))
    }
}

async fn accept(page: Arc<ServedPage>, listener: TcpListener) {
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
        let page = Arc::clone(&page);
        tokio::spawn(async move {
            serve_connection(page, stream).await;
            drop(place);
        });
    }
}

async fn serve_connection(page: Arc<ServedPage>, stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let stop = page.caller.state.daemon.stop.clone();
    let answer = service_fn(move |request: Request<Incoming>| {
        let page = Arc::clone(&page);
        async move { Ok::<_, Infallible>(page.answer(request).await) }
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
    async fn call(self: Arc<Self>, head: &Parts, body: Incoming) -> Result<Reply, ApiError> {
        let path = head.uri.path();
        let gone = if path == SESSION && head.method == Method::POST {
            CancellationToken::new()
        } else {
            let token = token_of(&head.headers);
            let token = token.and_then(|token| self.caller.state.entrance.admit(token));
            token.ok_or_else(|| {
                let why = "the token of this page is missing, wrong or has ended";
                ApiError::unauthorized("unauthorized", why)
            })?
        };
        find_route(&self.caller.routes, &head.method, path)?;
        check_kind(head)?;
        let body = read_body(body).await?;
        let query = head.uri.query().unwrap_or_default();
        self.caller
            .call(&head.method, (path, query), body, gone)
            .await
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
