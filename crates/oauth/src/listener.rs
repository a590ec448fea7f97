//! The address of this machine to which a browser is redirected.
//!
//! The listener starts before the browser is opened, accepts connections on loopback alone, and ends
//! with the login.

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, request::Parts};
use http_body_util::Full;
use http_core::{Arrival, ConnectionLimits, Guard, Handler, Server, Serving, html};
use hyper::body::Incoming;
use reqwest::Url;
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot},
};
use tokio_util::sync::CancellationToken;

use crate::{error::LoginError, settings::CallbackHost};

const PATH: &str = "/callback";

/// A browser opens a few connections, and the head of its request may have many cookies. One connection
/// more closes the one that has been silent for longest, so silent ones do not keep the browser waiting.
const LIMITS: ConnectionLimits = ConnectionLimits {
    connections_max: 16,
    head_bytes_max: 32 * 1024,
    receive_timeout: Duration::from_secs(10),
    stall_timeout: Duration::from_secs(10),
    half_closed_timeout: Duration::from_secs(5),
    end_timeout: Duration::from_millis(500),
};

/// The most attempts to find a port that is free at both addresses of `localhost`.
const PORTS_TRIED_MAX: usize = 16;

/// Listens for the redirect of one browser.
#[derive(Debug)]
pub(crate) struct Listener {
    sockets: Vec<TcpListener>,
    pub(crate) redirect_uri: String,
    /// `HOST:PORT`, as it appears in the browser's `Host` header.
    authority: String,
}

/// A browser that was redirected back, and waits for a page. The page holds no text from a remote server.
#[derive(Debug)]
pub struct Redirect {
    pub(crate) url: Url,
    /// True: the address belongs to the login.
    answer: oneshot::Sender<bool>,
}

impl Listener {
    /// Binds the port, or any free port if none is given.
    pub(crate) async fn bind(host: CallbackHost, port: Option<u16>) -> Result<Self, LoginError> {
        let wanted = port.unwrap_or(0);
        let mut attempts = 0;
        let (sockets, port) = loop {
            attempts += 1;
            match bind_all(host, wanted).await {
                Ok(bound) => break bound,
                // Another port may be free at both addresses.
                Err(error)
                    if wanted == 0
                        && attempts < PORTS_TRIED_MAX
                        && error.kind() == io::ErrorKind::AddrInUse => {}
                Err(error) => {
                    let (port, why) = (wanted, error.to_string());
                    return Err(LoginError::Port { port, why });
                }
            }
        };
        let authority = format!("{}:{port}", host.as_str());
        Ok(Self {
            sockets,
            redirect_uri: format!("http://{authority}{PATH}"),
            authority,
        })
    }

    /// Sends every redirected browser to `found`, until its receiver is dropped, and then waits until their
    /// pages are sent.
    pub(crate) async fn listen(self, found: mpsc::Sender<Redirect>) {
        let stop = CancellationToken::new();
        let _ended = stop.clone().drop_guard();
        let callback = Callback {
            guard: Guard::only(self.authority.clone()),
            authority: self.authority,
            found: found.clone(),
        };
        let server = Server::new(Arc::new(callback), LIMITS, None);
        tokio::select! {
            () = found.closed() => stop.cancel(),
            () = server.accept(&self.sockets, &stop) => {}
        }
        drop(self.sockets);
        server.end().await;
    }
}

/// Binds one port on every address that the browser may use for the host.
async fn bind_all(host: CallbackHost, wanted: u16) -> io::Result<(Vec<TcpListener>, u16)> {
    let first = TcpListener::bind((Ipv4Addr::LOCALHOST, wanted)).await?;
    let port = first.local_addr()?.port();
    let mut sockets = vec![first];
    if host == CallbackHost::Name {
        let newer: SocketAddr = (Ipv6Addr::LOCALHOST, port).into();
        match TcpListener::bind(newer).await {
            Ok(socket) => sockets.push(socket),
            // The browser would send the code to the process that listens there.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Err(error),
            // A machine without IPv6 has the IPv4 address alone.
            Err(_) => {}
        }
    }
    Ok((sockets, port))
}

/// The handler of the requests of browsers.
struct Callback {
    guard: Guard,
    authority: String,
    found: mpsc::Sender<Redirect>,
}

impl Handler for Callback {
    type Body = Full<Bytes>;

    /// Answers 404 to any request but the expected redirect.
    async fn answer(
        &self,
        request: Request<Incoming>,
        arrival: Arrival,
        _: &mut Serving,
    ) -> Response<Full<Bytes>> {
        let (head, _) = request.into_parts();
        let is_done = match self.find_url(&head, arrival.local) {
            Some(url) => {
                let (redirect, is_done) = Redirect::new(url);
                let is_sent = self.found.send(redirect).await.is_ok();
                Some(is_sent && is_done.await.unwrap_or_default())
            }
            None => None,
        };
        let (status, text) = match is_done {
            Some(true) => (
                StatusCode::OK,
                "You are logged in, and can close this page.",
            ),
            Some(false) => (
                StatusCode::BAD_REQUEST,
                "This response belongs to another login. See the terminal.",
            ),
            None => (StatusCode::NOT_FOUND, "Not found."),
        };
        html(status, &format!("<p>{text}\n")).map(Full::new)
    }
}

impl Callback {
    /// Returns the requested address if its host and path are ours.
    fn find_url(&self, head: &Parts, local: SocketAddr) -> Option<Url> {
        self.guard.check_host(head, local).ok()?;
        let query = head.uri.query()?;
        if head.method != Method::GET || head.uri.path() != PATH {
            return None;
        }
        Url::parse(&format!("http://{}{PATH}?{query}", self.authority)).ok()
    }
}

impl Redirect {
    /// Makes the redirect of a browser, and the receiver of whether it belongs to the login. The server to
    /// which the browser came shows the page then.
    pub fn new(url: Url) -> (Self, oneshot::Receiver<bool>) {
        let (answer, is_its) = oneshot::channel();
        (Self { url, answer }, is_its)
    }

    /// Has the result shown to the person.
    pub(crate) fn respond(self, is_done: bool) {
        // The browser may be gone.
        let _ = self.answer.send(is_done);
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpStream,
        time::timeout,
    };

    use super::*;

    #[test]
    fn only_the_browser_that_comes_back_is_heard() {
        const AT: &str = "127.0.0.1:5";
        let (found, _) = mpsc::channel(1);
        let callback = Callback {
            guard: Guard::only(AT.to_owned()),
            authority: AT.to_owned(),
            found,
        };
        let find = |line: &str, host: &str| {
            let (method, target) = line.split_once(' ').unwrap();
            let request = Request::builder().method(method).uri(target);
            let request = request.header("host", host).body(()).unwrap();
            callback.find_url(&request.into_parts().0, AT.parse().unwrap())
        };
        let url = find("GET /callback?code=a&state=b", AT);
        assert_eq!(url.unwrap().query(), Some("code=a&state=b"));
        for (line, host) in [
            ("POST /callback?code=a", AT),
            ("GET /callback?code=a", "evil.example"),
            ("GET /callback?code=a", ""),
            ("GET /callback", AT),
            ("GET /callback/../x?a", AT),
            ("GET /callbacks?a", AT),
            ("GET /favicon.ico", AT),
        ] {
            assert!(find(line, host).is_none(), "{line} {host}");
        }
    }

    #[tokio::test]
    async fn a_port_that_is_taken_at_the_newer_address_of_localhost_is_taken() {
        let Ok(stranger) = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).await else {
            // This machine has no IPv6, so no process can listen there.
            return;
        };
        let port = stranger.local_addr().unwrap().port();
        let taken = Listener::bind(CallbackHost::Name, Some(port)).await;
        assert!(matches!(taken, Err(LoginError::Port { port: it, .. }) if it == port));
    }

    #[tokio::test]
    async fn a_browser_is_answered_when_it_is_known_how_it_went() {
        let listener = Listener::bind(CallbackHost::Address, None).await.unwrap();
        let at = listener.sockets[0].local_addr().unwrap();
        assert_eq!(listener.redirect_uri, format!("http://{at}/callback"));
        let (sender, mut found) = mpsc::channel(1);
        let listening = tokio::spawn(listener.listen(sender));
        // Silent connections keep no browser waiting, no matter how many there are.
        let mut silent = Vec::new();
        for _ in 0..LIMITS.connections_max * 3 {
            silent.push(TcpStream::connect(at).await.unwrap());
        }
        let mut browser = TcpStream::connect(at).await.unwrap();
        let request = format!("GET /callback?state=x HTTP/1.1\r\nHost: {at}\r\n\r\n");
        browser.write_all(request.as_bytes()).await.unwrap();
        let came_back = timeout(Duration::from_mins(1), found.recv()).await;
        let came_back = came_back.expect("a browser is heard").unwrap();
        assert_eq!(came_back.url.query(), Some("state=x"));
        came_back.respond(true);
        drop(found);
        let mut page = String::new();
        browser.read_to_string(&mut page).await.unwrap();
        assert!(
            page.starts_with("HTTP/1.1 200") && page.contains("close this page"),
            "{page}"
        );
        listening.await.unwrap();
        assert!(TcpStream::connect(at).await.is_err());
    }
}
