//! The address of this machine to which a browser is redirected.
//!
//! The listener starts before the browser is opened, accepts connections on loopback alone, and ends
//! with the login.

use std::{
    collections::VecDeque,
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use reqwest::Url;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::{mpsc, oneshot},
    task::{AbortHandle, JoinSet},
    time::timeout,
};

use crate::{error::LoginError, settings::CallbackHost};

const PATH: &str = "/callback";

/// The largest head of a request; that of a browser with many cookies is shorter.
const HEAD_BYTES_MAX: usize = 32 * 1024;

/// The longest time that a connection may take to send the head of its request.
const HEAD_WAIT: Duration = Duration::from_secs(10);

/// The most connections at one time; a browser opens a few. One more closes the connection that has
/// been silent for longest, so silent connections do not keep the browser waiting.
const CONNECTIONS_MAX: usize = 16;

/// The most attempts to find a port that is free at both addresses of `localhost`.
const PORTS_TRIED_MAX: usize = 16;

/// Listens for the redirect of one browser.
#[derive(Debug)]
pub(crate) struct Listener {
    sockets: Vec<TcpListener>,
    pub(crate) redirect_uri: String,
    /// `HOST:PORT`, as it appears in the browser's `Host` header.
    authority: String,
    head_wait: Duration,
}

/// A browser that was redirected back, and waits for a page.
#[derive(Debug)]
pub struct Redirect {
    pub(crate) url: Url,
    page: Page,
}

#[derive(Debug)]
enum Page {
    Stream(TcpStream),
    /// Another server shows the page; true: the response belongs to the login.
    Elsewhere(oneshot::Sender<bool>),
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
            head_wait: HEAD_WAIT,
        })
    }

    /// Sends every redirected browser to `found`, until its receiver is dropped.
    pub(crate) async fn listen(self, found: mpsc::Sender<Redirect>) {
        let mut readings = JoinSet::new();
        // The oldest first.
        let mut under_way: VecDeque<AbortHandle> = VecDeque::new();
        loop {
            let accepting = self.sockets.iter().map(|socket| Box::pin(socket.accept()));
            let accepted = futures::future::select_all(accepting);
            tokio::select! {
                biased;
                () = found.closed() => return,
                Some(read) = readings.join_next() => {
                    if let Ok(Some(came_back)) = read {
                        let _ = found.send(came_back).await;
                    }
                }
                (accepted, ..) = accepted => {
                    let Ok((stream, _)) = accepted else {
                        continue;
                    };
                    under_way.retain(|reading| !reading.is_finished());
                    if under_way.len() >= CONNECTIONS_MAX
                        && let Some(oldest) = under_way.pop_front()
                    {
                        oldest.abort();
                    }
                    let (authority, wait) = (self.authority.clone(), self.head_wait);
                    under_way.push_back(readings.spawn(async move {
                        let reading = timeout(wait, read(stream, &authority)).await;
                        reading.ok().flatten()
                    }));
                }
            }
        }
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

/// Reads one request. Answers 404 to any request but the expected redirect.
async fn read(mut stream: TcpStream, authority: &str) -> Option<Redirect> {
    let mut head = Vec::new();
    while !head.windows(4).any(|it| it == b"\r\n\r\n") {
        if head.len() > HEAD_BYTES_MAX || stream.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let Some(url) = find_url(&head, authority) else {
        answer(&mut stream, "404 Not Found", "Not found.").await;
        return None;
    };
    let page = Page::Stream(stream);
    Some(Redirect { url, page })
}

/// Returns the requested address if its host and path are ours.
fn find_url(head: &[u8], authority: &str) -> Option<Url> {
    let head = std::str::from_utf8(head).ok()?;
    let mut lines = head.split("\r\n");
    let target = lines.next()?.strip_prefix("GET ")?;
    let target = target.split(' ').next()?;
    let mut headers = lines.filter_map(|line| line.split_once(':'));
    let (_, host) = headers.find(|(name, _)| name.eq_ignore_ascii_case("host"))?;
    if !host.trim().eq_ignore_ascii_case(authority) || !target.starts_with(PATH) {
        return None;
    }
    let url = Url::parse(&format!("http://{authority}{target}")).ok()?;
    (url.path() == PATH && url.query().is_some()).then_some(url)
}

impl Redirect {
    /// Makes the redirect of a browser that came to another server of ours, which shows the page once
    /// it knows if the address belongs to the login.
    pub fn elsewhere(url: Url) -> (Self, oneshot::Receiver<bool>) {
        let (sender, is_its) = oneshot::channel();
        let page = Page::Elsewhere(sender);
        (Self { url, page }, is_its)
    }

    /// Shows the person the result. The page holds no text from a remote server.
    pub(crate) async fn respond(self, is_done: bool) {
        let mut stream = match self.page {
            Page::Stream(stream) => stream,
            Page::Elsewhere(sender) => {
                // The browser may be gone.
                let _ = sender.send(is_done);
                return;
            }
        };
        let (status, text) = if is_done {
            ("200 OK", "You are logged in, and can close this page.")
        } else {
            (
                "400 Bad Request",
                "This response belongs to another login. See the terminal.",
            )
        };
        answer(&mut stream, status, text).await;
    }
}

async fn answer(stream: &mut TcpStream, status: &str, text: &str) {
    let page = format!("<!doctype html><meta charset=utf-8><title>proxy</title><p>{text}\n");
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Content-Security-Policy: default-src 'none'\r\nReferrer-Policy: no-referrer\r\n\
         Cache-Control: no-store\r\nConnection: close\r\n\r\n{page}",
        page.len()
    );
    // The browser may have closed the connection; that is no error.
    let _ = stream.write_all(response.as_bytes()).await;
    let _ = stream.shutdown().await;
}

#[cfg(test)]
mod tests {
    use std::{net::Ipv6Addr, time::Duration};

    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::{TcpListener, TcpStream},
        sync::mpsc,
        time::timeout,
    };

    use super::{CONNECTIONS_MAX, Listener, find_url};
    use crate::{CallbackHost, LoginError};

    #[test]
    fn only_the_browser_that_comes_back_is_heard() {
        let find = |head: &str| find_url(head.as_bytes(), "127.0.0.1:5");
        let url = find("GET /callback?code=a&state=b HTTP/1.1\r\nhost: 127.0.0.1:5\r\n\r\n");
        assert_eq!(url.unwrap().query(), Some("code=a&state=b"));
        for other in [
            "POST /callback?code=a HTTP/1.1\r\nHost: 127.0.0.1:5\r\n\r\n",
            "GET /callback?code=a HTTP/1.1\r\nHost: evil.example\r\n\r\n",
            "GET /callback?code=a HTTP/1.1\r\n\r\n",
            "GET /callback HTTP/1.1\r\nHost: 127.0.0.1:5\r\n\r\n",
            "GET /callback/../x?a HTTP/1.1\r\nHost: 127.0.0.1:5\r\n\r\n",
            "GET /favicon.ico HTTP/1.1\r\nHost: 127.0.0.1:5\r\n\r\n",
            "\r\n\r\n",
        ] {
            assert!(find(other).is_none(), "{other}");
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
        let mut listener = Listener::bind(CallbackHost::Address, None).await.unwrap();
        listener.head_wait = Duration::from_hours(1);
        let at = listener.sockets[0].local_addr().unwrap();
        assert_eq!(listener.redirect_uri, format!("http://{at}/callback"));
        let (sender, mut found) = mpsc::channel(1);
        let listening = tokio::spawn(listener.listen(sender));
        // Silent connections keep no browser waiting, no matter how many there are.
        let mut silent = Vec::new();
        for _ in 0..CONNECTIONS_MAX * 3 {
            silent.push(TcpStream::connect(at).await.unwrap());
        }
        let mut browser = TcpStream::connect(at).await.unwrap();
        let request = format!("GET /callback?state=x HTTP/1.1\r\nHost: {at}\r\n\r\n");
        browser.write_all(request.as_bytes()).await.unwrap();
        let came_back = timeout(Duration::from_mins(1), found.recv()).await;
        let came_back = came_back.expect("a browser is heard").unwrap();
        assert_eq!(came_back.url.query(), Some("state=x"));
        came_back.respond(true).await;
        let mut page = String::new();
        browser.read_to_string(&mut page).await.unwrap();
        assert!(
            page.starts_with("HTTP/1.1 200") && page.contains("close this page"),
            "{page}"
        );
        drop(found);
        listening.await.unwrap();
        assert!(TcpStream::connect(at).await.is_err());
    }
}
