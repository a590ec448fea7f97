//! `/login/CODE`: the page on which a caller begins its own login at a server, and `/login/callback`, to
//! which the authorization server redirects its browser.

use std::sync::Arc;

use fleet::{CallerLogins, LoginArrival};
use gateway::Gateway;
use hyper::{
    Method, Response, StatusCode,
    header::{
        CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, LOCATION, ORIGIN,
        REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
    },
    http::request::Parts,
};
use url::Url;

use super::{body::Body, gate::Gate, http_error::HttpError};

/// The path of all these pages.
pub(super) const LOGIN_PATH: &str = "/login/";

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Answers a browser. It has no token: the code of the address, or the `state` of the redirect, stands
/// for the caller who got it.
pub(super) async fn log_in(
    gateway: &Gateway,
    gate: &Gate,
    head: &Parts,
) -> Result<Response<Body>, HttpError> {
    let logins = gateway.servers.caller_logins();
    let logins = logins.ok_or_else(HttpError::nowhere)?;
    let code = head.uri.path().trim_start_matches(LOGIN_PATH);
    match (code, &head.method) {
        ("callback", &Method::GET) => Ok(finish(&logins, gate, head).await),
        (code, &Method::GET) => Ok(confirm(&logins, code)),
        (code, &Method::POST) => Ok(begin(&logins, code, head).await),
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
    let (server, caller) = (escape(&offered.server), escape(&offered.caller));
    let text = format!(
        "<h1>Log in at {server}</h1>\n\
         <p>Calls of <b>{caller}</b> will use your account at <b>{server}</b>.\n\
         <p>Continue only if you are {caller} and your own client showed you this address.\n\
         <form method=\"post\" action=\"{code}\"><button>Continue</button></form>\n",
        code = escape(code),
    );
    page(StatusCode::OK, &text)
}

/// Sends the browser to the authorization server. Only our own page may send the form: another site
/// could have a person log in for a caller who is somebody else.
async fn begin(logins: &Arc<CallerLogins>, code: &str, head: &Parts) -> Response<Body> {
    let site = head.headers.get(SEC_FETCH_SITE);
    let is_ours = head.headers.contains_key(ORIGIN) && site.is_none_or(|it| it == "same-origin");
    if !is_ours {
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
    format!("<p>{}\n", escape(text))
}

/// Returns a page without scripts, styles and foreign content. It has no `form-action`: browsers apply
/// that to the redirect after the form as well.
fn page(status: StatusCode, content: &str) -> Response<Body> {
    let text = format!(
        "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n\
         <meta name=viewport content=\"width=device-width\">\n<title>proxy: log in</title>\n{content}"
    );
    let mut response = Body::whole(text.into()).respond(status, "text/html; charset=utf-8");
    let policy = "default-src 'none'; base-uri 'none'; frame-ancestors 'none'";
    let headers = [
        (CONTENT_SECURITY_POLICY, policy),
        (X_FRAME_OPTIONS, "DENY"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // With `no-referrer`, the form would come with the origin `null`.
        (REFERRER_POLICY, "same-origin"),
        (CACHE_CONTROL, "no-store"),
    ];
    let headers = headers.map(|(name, value)| (name, HeaderValue::from_static(value)));
    response.headers_mut().extend(headers);
    response
}

fn escape(text: &str) -> String {
    let text = printable::one_line(text).replace('&', "&amp;");
    let text = text.replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::{escape, page, paragraph};
    use hyper::{StatusCode, header::CONTENT_SECURITY_POLICY};

    #[test]
    fn a_text_of_others_is_no_markup() {
        let text = "<script>alert('a & \"b\"')</script>\u{202e}\n";
        let escaped = escape(text);
        assert!(
            !escaped.contains(['<', '>', '"', '\'', '\n', '\u{202e}']),
            "{escaped}"
        );
        assert!(paragraph(text).starts_with("<p>&lt;script&gt;"));
    }

    #[test]
    fn a_page_runs_nothing_and_is_framed_nowhere() {
        let page = page(StatusCode::OK, "");
        let policy = page.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
    }
}
