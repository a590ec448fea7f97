//! The table of routes: each is a method, a path, a sentence, and a handler whose types are its
//! documentation.

use std::{future::Future, sync::Arc};

use futures::{FutureExt as _, future::BoxFuture};
use hyper::Method;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio_util::sync::CancellationToken;

#[cfg(all(test, feature = "schema"))]
use crate::openapi::schema::{Generator, Schemas};
use crate::{
    error::ApiError,
    openapi::Documented,
    page_state::PageState,
    query::read_query,
    reply::{JSON, Reply},
};

/// One request to a handler.
pub(crate) struct Call<Q, B> {
    pub(crate) page: Arc<PageState>,
    /// The values of `{...}` in the path, in order.
    pub(crate) path: Vec<String>,
    pub(crate) query: Q,
    pub(crate) body: B,
    /// Cancelled when the token of the request ends.
    pub(crate) gone: CancellationToken,
}

/// No query, or an empty body.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

/// A request as it arrived, with its names checked.
pub(crate) type Arrived = Call<String, Vec<u8>>;

type Run = Box<dyn Fn(Arrived) -> BoxFuture<'static, Result<Reply, ApiError>> + Send + Sync>;

/// One route.
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    #[cfg_attr(not(test), expect(dead_code, reason = "`openapi.json` has it"))]
    pub(crate) about: &'static str,
    /// The content type of the answer.
    #[cfg_attr(not(test), expect(dead_code, reason = "`openapi.json` has it"))]
    pub(crate) kind: &'static str,
    pub(crate) run: Run,
    #[cfg(all(test, feature = "schema"))]
    pub(crate) schemas: Schemas,
}

/// The table while routes are added to it.
#[derive(Default)]
pub(crate) struct RouteTable {
    pub(crate) list: Vec<Route>,
    #[cfg(all(test, feature = "schema"))]
    pub(crate) generator: Generator,
}

/// The route that admits without a token.
pub(crate) const SESSION: &str = "/api/v1/session";

impl RouteTable {
    /// Adds a route whose answer is JSON.
    pub(crate) fn add<Q, B, A, F>(
        &mut self,
        (method, path): (Method, &'static str),
        about: &'static str,
        handler: impl Fn(Call<Q, B>) -> F + Send + Sync + 'static,
    ) where
        Q: DeserializeOwned + Documented + Send + 'static,
        B: DeserializeOwned + Documented + Send + 'static,
        A: Serialize + Documented,
        F: Future<Output = Result<A, ApiError>> + Send + 'static,
    {
        self.add_raw::<Q, B, A, _>((method, path), about, JSON, move |call| {
            let running = handler(call);
            async move { Reply::json(&running.await?) }
        });
    }

    /// Adds a route whose handler blocks.
    pub(crate) fn add_blocking<Q, B, A>(
        &mut self,
        route: (Method, &'static str),
        about: &'static str,
        handler: fn(Call<Q, B>) -> Result<A, ApiError>,
    ) where
        Q: DeserializeOwned + Documented + Send + 'static,
        B: DeserializeOwned + Documented + Send + 'static,
        A: Serialize + Documented + Send + 'static,
    {
        self.add(route, about, move |call| async move {
            let running = tokio::task::spawn_blocking(move || handler(call));
            running.await.map_err(anyhow::Error::from)?
        });
    }

    /// Adds a route whose handler writes its answer itself; `A` documents it.
    pub(crate) fn add_raw<Q, B, A, F>(
        &mut self,
        (method, path): (Method, &'static str),
        about: &'static str,
        kind: &'static str,
        handler: impl Fn(Call<Q, B>) -> F + Send + Sync + 'static,
    ) where
        Q: DeserializeOwned + Documented + Send + 'static,
        B: DeserializeOwned + Documented + Send + 'static,
        A: Documented,
        F: Future<Output = Result<Reply, ApiError>> + Send + 'static,
    {
        let has_body = method != Method::GET;
        let run = move |arrived: Arrived| {
            let call = read::<Q, B>(arrived, has_body).map(&handler);
            async move { call?.await }.boxed()
        };
        self.list.push(Route {
            method,
            path,
            about,
            kind,
            run: Box::new(run),
            #[cfg(all(test, feature = "schema"))]
            schemas: self.generator.describe::<Q, B, A>(has_body),
        });
    }
}

/// Finds the route of a path, and the values in it. The error says which methods the path has.
pub(crate) fn find_route<'r>(
    routes: &'r [Route],
    method: &Method,
    path: &str,
) -> Result<(&'r Route, Vec<String>), ApiError> {
    let mut methods = Vec::new();
    for route in routes {
        if let Some(values) = match_path(route.path, path) {
            if route.method == *method {
                return Ok((route, values));
            }
            methods.push(route.method.as_str());
        }
    }
    if methods.is_empty() {
        let next = "GET /api/v1/openapi.json lists the routes";
        return Err(ApiError::not_found("there is no such route").next(next));
    }
    Err(ApiError::method_not_allowed(&methods.join(", ")))
}

/// Returns the values of the `{...}` in a pattern; each is one segment of the path.
fn match_path(pattern: &str, path: &str) -> Option<Vec<String>> {
    let (mut wanted, mut given) = (pattern.split('/'), path.split('/'));
    let mut values = Vec::new();
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return Some(values),
            (Some(wanted), Some(given)) if wanted.starts_with('{') => {
                values.push(decode(given).filter(|it| !it.is_empty())?);
            }
            (wanted, given) if wanted == given => {}
            _ => return None,
        }
    }
}

/// Decodes a segment of a path, in which `+` is no space.
fn decode(segment: &str) -> Option<String> {
    let form = format!("v={}", segment.replace('+', "%2B").replace('&', "%26"));
    let (_, value) = url::form_urlencoded::parse(form.as_bytes()).next()?;
    Some(value.into_owned())
}

fn read<Q: DeserializeOwned, B: DeserializeOwned>(
    arrived: Arrived,
    has_body: bool,
) -> Result<Call<Q, B>, ApiError> {
    let query = read_query(&arrived.query);
    let query = query.map_err(|error| ApiError::bad(format!("the query is wrong: {error}")))?;
    let body: &[u8] = if has_body { &arrived.body } else { b"{}" };
    let body = serde_json::from_slice(body);
    let body = body.map_err(|error| ApiError::invalid(format!("the body is wrong: {error}")))?;
    Ok(Call {
        page: arrived.page,
        path: arrived.path,
        query,
        body,
        gone: arrived.gone,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, expected: Option<&[&str]>) {
        let values = match_path("/api/v1/tools/{server}/{tool}", path);
        let values = values
            .as_ref()
            .map(|it| it.iter().map(String::as_str).collect());
        assert_eq!(values, expected.map(<[&str]>::to_vec));
    }

    #[test]
    fn a_value_in_a_path_is_one_decoded_segment() {
        check("/api/v1/tools/git/git_log", Some(&["git", "git_log"]));
        check("/api/v1/tools/git/a%2Fb+c%26d", Some(&["git", "a/b+c&d"]));
        check("/api/v1/tools/git/", None);
        check("/api/v1/tools/git", None);
        check("/api/v1/tools/git/a/b", None);
    }
}
