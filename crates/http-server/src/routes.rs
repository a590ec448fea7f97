//! The paths that are served, and their responses.

use std::sync::Arc;

use gateway::{Connection, Gateway};
use http_core::{Arrival, Handler, Problem, Serving};
use hyper::{Method, Request, Response, StatusCode, body::Incoming, http::request::Parts};

use super::{
    body::{Body, JSON},
    caller_login::{LOGIN_PATH, log_in},
    gate::preflight,
    guarding::METADATA_PATH,
    http_error::HttpError,
    peer::{ClientIdentity, identify, is_here},
    programs::{TOOLS, read_tools},
    reply::refuse,
    service::Service,
};

impl Handler for Service {
    type Body = Body;

    async fn answer(
        &self,
        request: Request<Incoming>,
        arrival: Arrival,
        serving: &mut Serving,
    ) -> Response<Body> {
        let (head, body) = request.into_parts();
        let mut response = match self.route(&head, body, &arrival).await {
            Ok(response) => {
                serving.admit();
                response
            }
            Err(error) => {
                if self.complaints.log_error(&error) && error.is_of_credential() {
                    self.gateway.record_refused_credential(&error.message);
                }
                refuse(error)
            }
        };
        self.endpoint
            .gate
            .open_to_page(&head, response.headers_mut());
        response
    }

    fn log(&self, problem: &Problem) {
        match problem {
            Problem::Accept(error) => drop(self.complaints.log("accept", &error.to_string())),
            Problem::Full => {
                let max = self.endpoint.limits.connections_max;
                let why = format!(
                    "{max} are open, or half as many from one address; idle \
                     ones are closed first"
                );
                self.complaints.log("connections", &why);
            }
        }
    }
}

impl Service {
    async fn route(
        &self,
        head: &Parts,
        body: Incoming,
        arrival: &Arrival,
    ) -> Result<Response<Body>, HttpError> {
        let gate = &self.endpoint.gate;
        gate.guard.check_names(head, arrival.local)?;
        match (head.uri.path(), &head.method) {
            ("/healthz", &Method::GET | &Method::HEAD) => Ok(text(StatusCode::OK, "ok\n")),
            ("/readyz", &Method::GET | &Method::HEAD) => Ok(self.ready().await),
            ("/healthz" | "/readyz", _) => Err(HttpError::method("GET, HEAD")),
            (path, &Method::OPTIONS) if is_mcp(path) => Ok(preflight()),
            (path, method) if is_mcp(path) => {
                let admitted = gate.check_token(head).await?;
                let profile = self.find_profile(path)?;
                let address = arrival.from;
                let http_caller = identify(&self.gateway, gate, head, admitted.as_ref());
                let connection = Connection {
                    transport: "http",
                    token: admitted.as_ref().map(|it| Arc::clone(&it.name)),
                    caller: admitted.as_ref().map(|it| Arc::clone(&it.caller)),
                    http_caller: Arc::new(http_caller.into()),
                    rule: admitted.and_then(|it| it.rule),
                    profile,
                    is_here: is_here(address, &head.headers),
                    ..Connection::default()
                };
                let peer = ClientIdentity {
                    connection,
                    address,
                };
                match *method {
                    Method::POST => self.post(head, body, peer).await,
                    Method::GET => self.get(head, &peer),
                    Method::DELETE => self.delete(head, &peer),
                    _ => Err(HttpError::method("POST, GET, DELETE")),
                }
            }
            (path, method) if path == TOOLS || path.starts_with(&format!("{TOOLS}/")) => {
                let admitted = gate.check_token(head).await?;
                match *method {
                    Method::GET | Method::HEAD => {
                        Ok(read_tools(&self.gateway, head, admitted.as_ref()).await)
                    }
                    _ => Err(HttpError::method("GET, HEAD")),
                }
            }
            (path, _) if path.starts_with(LOGIN_PATH) => log_in(&self.gateway, gate, head).await,
            ("/metrics", method) if self.endpoint.metrics => {
                gate.check_token(head).await?;
                match *method {
                    Method::GET | Method::HEAD => Ok(self.metrics().await),
                    _ => Err(HttpError::method("GET, HEAD")),
                }
            }
            (path, &Method::GET | &Method::HEAD) if path.starts_with(METADATA_PATH) => {
                self.describe_resource()
            }
            _ => Err(HttpError::nowhere()),
        }
    }

    /// Returns the profile that the path names, `/mcp/work`.
    fn find_profile(&self, path: &str) -> Result<Option<Arc<str>>, HttpError> {
        let name = path.trim_start_matches("/mcp").trim_matches('/');
        if name.is_empty() {
            return Ok(None);
        }
        let settings = self.gateway.settings();
        if settings.clients.profiles().all(|(known, _)| known != name) {
            return Err(HttpError::no_profile());
        }
        Ok(Some(name.into()))
    }

    /// Returns the metadata of the protected resource, for clients that have no token yet.
    fn describe_resource(&self) -> Result<Response<Body>, HttpError> {
        let guarding = self.endpoint.gate.guarding.as_ref();
        let guarding = guarding.ok_or_else(HttpError::nowhere)?;
        let metadata = guarding.metadata().to_string();
        Ok(Body::whole(metadata.into()).respond(StatusCode::OK, JSON))
    }

    /// Returns metrics for Prometheus, collected on a thread that may block.
    async fn metrics(&self) -> Response<Body> {
        let gateway = Arc::clone(&self.gateway);
        let gathering = tokio::task::spawn_blocking(move || gateway.metrics());
        match gathering.await {
            Ok(figures) => {
                Body::whole(figures.into()).respond(StatusCode::OK, Gateway::METRICS_TYPE)
            }
            Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, &format!("{error}\n")),
        }
    }

    /// Returns 200 if calls can be answered: the registry can be read, and there is room for a session.
    async fn ready(&self) -> Response<Body> {
        if let Err(error) = self.gateway.catalog.generation().await {
            return text(StatusCode::SERVICE_UNAVAILABLE, &format!("{error}\n"));
        }
        if self.sessions.is_full() {
            return text(StatusCode::SERVICE_UNAVAILABLE, "no room for a session\n");
        }
        text(StatusCode::OK, "ready\n")
    }
}

fn text(status: StatusCode, text: &str) -> Response<Body> {
    Body::whole(text.to_owned().into()).respond(status, "text/plain; charset=utf-8")
}

/// Returns true for `/mcp`, and for `/mcp/NAME`, which names a profile.
fn is_mcp(path: &str) -> bool {
    let rest = path.strip_prefix("/mcp").map(|it| it.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') && !rest[1..].contains('/'))
}
