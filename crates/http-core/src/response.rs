//! Responses, and the pages that are shown to a person who logs in.

use bytes::Bytes;
use hyper::{
    HeaderMap, Response, StatusCode,
    header::{CONTENT_TYPE, HeaderName, HeaderValue},
};

/// The headers of a page without scripts, styles and foreign content. There is no `form-action`: browsers
/// apply that to the redirect after a form as well.
const HTML_HEADERS: [(&str, &str); 5] = [
    (
        "content-security-policy",
        "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
    ),
    ("x-frame-options", "DENY"),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cache-control", "no-store"),
];

/// Returns a response with a body of this content type.
pub fn respond<B>(status: StatusCode, kind: &'static str, body: B) -> Response<B> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// Sets headers whose names and values are constants.
pub fn add_headers(headers: &mut HeaderMap, added: &[(&'static str, &'static str)]) {
    for (name, value) in added {
        let name = HeaderName::from_static(name);
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// Returns a page for a person. `content` is markup, in which the texts of others are escaped.
pub fn html(status: StatusCode, content: &str) -> Response<Bytes> {
    let text = format!(
        "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n\
         <meta name=viewport content=\"width=device-width\">\n<title>proxy: log in</title>\n{content}"
    );
    let mut response = respond(status, "text/html; charset=utf-8", text.into());
    add_headers(response.headers_mut(), &HTML_HEADERS);
    response
}

/// Escapes a text of others for a page, on one line.
pub fn escape_html(text: &str) -> String {
    let text = printable::one_line(text).replace('&', "&amp;");
    let text = text.replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use hyper::header::CONTENT_SECURITY_POLICY;

    use super::*;

    #[test]
    fn a_text_of_others_is_no_markup() {
        let text = "<script>alert('a & \"b\"')</script>\u{202e}\n";
        let escaped = escape_html(text);
        assert!(
            !escaped.contains(['<', '>', '"', '\'', '\n', '\u{202e}']),
            "{escaped}"
        );
        assert!(escaped.starts_with("&lt;script&gt;"));
    }

    #[test]
    fn a_page_runs_nothing_and_is_framed_nowhere() {
        let page = html(StatusCode::OK, "");
        let policy = page.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
    }
}
