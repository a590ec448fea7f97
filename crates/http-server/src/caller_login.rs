//! `/login/CODE`: the page on which a caller begins its own login at a server, and `/login/callback`, to
//! which the authorization server redirects its browser.

use std::sync::Arc;

use fleet::{CallerLogins, LoginArrival};
use gateway::Gateway;
use http_core::{check_same_site, escape_html, has_origin, html};
use hyper::{
    Method, Response, StatusCode,
    header::{HeaderValue, LOCATION, REFERRER_POLICY},
    http::request::Parts,
};
use url::Url;

use super::{body::Body, gate::Gate, http_error::HttpError};

/// The path of all these pages.
pub(super) const LOGIN_PATH: &str = "/login/";

/// Answers a browser. It has no token: the code of the address, or the `state` of the redirect, stands
/// for the caller who got it.
pub(super) async fn log_in(
    gateway: &Gateway,
    gate: &Gate,
    head: &Parts,
) -> Result<Response<Body>, HttpError> {
    let callers = gateway.servers.callers().ok_or_else(HttpError::nowhere)?;
    let logins = callers.logins();
    let code = head.uri.path().trim_start_matches(LOGIN_PATH);
    match (code, &head.method) {
        ("callback", &Method::GET) => Ok(finish(logins, gate, head).await),
        (code, &Method::GET) => Ok(confirm(logins, code)),
        (code, &Method::POST) => Ok(begin(logins, code, head).await),
        _ => Err(HttpError::method("GET, POST")),
    }
}

async fn finish(logins: &Arc<CallerLogins>, gate: &Gate, head: &Parts) -> Response<Body> {
    let query = head.uri.query().unwrap_or_default();
    let url = Url::parse(&format!(
        "{}{LOGIN_PATH}callback?{query}",
        gate.origin(head)
    ));
    let arrival = match url {
        Ok(url) => logins.arrive(url).await,
        Err(_) => LoginArrival::Unknown,
    };
    let (status, text) = match arrival {
        LoginArrival::Done { server } => (
            StatusCode::OK,
            format!("You are logged in at {server}. Close this page and call the tool again."),
        ),
        LoginArrival::Failed(why) => (
            StatusCode::BAD_REQUEST,
            format!("You are not logged in: {why}. Call the tool again for another try."),
        ),
        LoginArrival::Unknown => (StatusCode::BAD_REQUEST, UNKNOWN.to_owned()),
    };
    page(status, &paragraph(&text))
}

const UNKNOWN: &str =
    "This address is not valid any more. Call the tool again: its answer has a new one.";

/// Asks the person first: a login gives a caller the person's rights, so a link of somebody else must
/// not be enough.
fn confirm(logins: &CallerLogins, code: &str) -> Response<Body> {
    let Some(offered) = logins.find(code) else {
        return page(StatusCode::NOT_FOUND, &paragraph(UNKNOWN));
    };
    let (server, caller) = (escape_html(&offered.server), escape_html(&offered.caller));
    let text = format!(
        "<h1>Log in at {server}</h1>\n\
         <p>Calls of <b>{caller}</b> will use your account at <b>{server}</b>.\n\
         <p>Continue only if you are {caller} and your own client showed you this address.\n\
         <form method=\"post\" action=\"{code}\"><button>Continue</button></form>\n",
        code = escape_html(code),
    );
    page(StatusCode::OK, &text)
}

/// Sends the browser to the authorization server. Only our own page may send the form: another site
/// could have a person log in for a caller who is somebody else.
async fn begin(logins: &Arc<CallerLogins>, code: &str, head: &Parts) -> Response<Body> {
    if !has_origin(head) || check_same_site(head, false).is_err() {
        let text = "Open the address in your browser, and continue there.";
        return page(StatusCode::FORBIDDEN, &paragraph(text));
    }
    let location = match logins.begin(code).await {
        Ok(url) => HeaderValue::try_from(url.as_str()).map_err(|error| error.to_string()),
        Err(why) => Err(why),
    };
    match location {
        Ok(location) => {
            let mut response = page(StatusCode::SEE_OTHER, "");
            response.headers_mut().insert(LOCATION, location);
            response
        }
        Err(why) => {
            let text = format!("The login cannot begin: {why}.");
            page(StatusCode::BAD_GATEWAY, &paragraph(&text))
        }
    }
}

fn paragraph(text: &str) -> String {
    format!("<p>{}\n", escape_html(text))
}

fn page(status: StatusCode, content: &str) -> Response<Body> {
    let mut response = html(status, content).map(Body::whole);
    // With `no-referrer`, the form would come with the origin `null`.
    let policy = HeaderValue::from_static("same-origin");
    response.headers_mut().insert(REFERRER_POLICY, policy);
    response
}
