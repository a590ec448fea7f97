//! The values of a caller that servers get.

use std::sync::Arc;

use gateway::Gateway;
use hyper::HeaderMap;
use tool::HttpCaller;

use super::{gate::get_once, guarding::Admitted};

/// Returns what servers may get of a request: the subject of its token, and the headers that the
/// configuration names. `origin` is our address for its person's browser. Returns `None` if no server
/// differs between callers.
pub(super) fn identify(
    gateway: &Gateway,
    admitted: Option<&Admitted>,
    headers: &HeaderMap,
    origin: impl FnOnce() -> Arc<str>,
) -> Option<Arc<HttpCaller>> {
    let wanted = gateway.servers.caller_values()?;
    let value = |name: &String| {
        let header = name.strip_prefix(HttpCaller::PREFIX)?;
        let value = get_once(headers, header).ok()??;
        Some((name.clone(), value.to_owned()))
    };
    let of_headers = wanted.iter().filter(|it| *it != HttpCaller::SUBJECT);
    let subject = admitted.map(|it| (HttpCaller::SUBJECT.to_owned(), it.subject.clone()));
    let caller = Arc::new(HttpCaller {
        name: admitted.map_or_else(|| "".into(), |it| Arc::clone(&it.caller)),
        values: of_headers.filter_map(value).chain(subject).collect(),
        origin: origin(),
    });
    gateway.catalog.meet_caller(&caller);
    Some(caller)
}
