//! `proxy serve --http`: has the daemon serve HTTP for as long as we live, and again when it is
//! lost.

use std::{net::TcpListener, time::Duration};

use anyhow::anyhow;
use fleet::Variables;
use http_server::Listen;
use tokio::{
    io::AsyncWriteExt as _,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    hello::{DaemonReply, HttpRequest, Purpose, receive_line, wait_for_line},
    reach::{NoDaemon, Route, reach},
    socket::{PASSES_LISTENERS, Stream, send_listener},
};

/// The delay after a failure before the daemon is asked again: the first, and the maximum, up to which
/// each failure doubles it. A configuration that was broken meanwhile is repaired by a person.
const REST_MIN: Duration = Duration::from_millis(100);
const REST_MAX: Duration = Duration::from_secs(10);

/// A daemon that ends sooner than this has failed too: a loop of such daemons slows down.
const SHORT_LIFE: Duration = Duration::from_secs(1);

/// The time that clients wait in our socket for the next daemon. If none comes, they are refused, as if
/// nothing listened.
const SOCKET_WAIT: Duration = Duration::from_secs(10);

/// The connection to a daemon that was killed may end a moment before its other sockets do.
const BIND_TRIES: usize = 20;
const BIND_REST: Duration = Duration::from_millis(5);

/// The wait for the daemon to end the sessions before we exit.
const END_WAIT: Duration = Duration::from_secs(3);

/// An address that the daemon holds for us.
struct ServedHttp {
    stream: Stream,
    url: String,
    /// The daemon listens there for us, and not for the configuration.
    is_ours: bool,
    /// Asked for when the daemon is lost, so that clients find the next one.
    again: Option<Listen>,
}

/// Keeps HTTP served until `stop`, or until a person stops the daemon. Fails if it cannot be served
/// at the start. `say` is for people.
pub async fn hold_http(
    route: Route,
    listen: Option<Listen>,
    say: fn(&str),
    stop: CancellationToken,
) -> Result<(), NoDaemon> {
    let mut socket = None;
    let asking = ask(&route, listen, None, say);
    let Some(first) = stop.run_until_cancelled(asking).await else {
        return Ok(());
    };
    let mut held = first?;
    let mut rest = Duration::ZERO;
    loop {
        let since = Instant::now();
        say(&format!("serving MCP at {}", held.url));
        let Some(end) = stop.run_until_cancelled(wait_for_end(&mut held)).await else {
            // The daemon waits for a byte, or for the end of the stream; not every stream has an end of its
            // own in each direction.
            let _ = held.stream.write_all(b"\n").await;
            let _ = held.stream.shutdown().await;
            let _ = timeout(END_WAIT, wait_for_end(&mut held)).await;
            return Ok(());
        };
        if matches!(end, Some(DaemonReply::Stopping)) {
            say("the daemon was stopped: HTTP is no longer served");
            return Ok(());
        }
        say("the connection to the daemon was lost; connecting again");
        if since.elapsed() >= SHORT_LIFE {
            rest = Duration::ZERO;
        }
        if PASSES_LISTENERS && socket.is_none() && held.is_ours {
            let binding = bind_at_once(held.again);
            socket = stop.run_until_cancelled(binding).await.flatten();
        }
        let asking = ask_again(&route, held.again, &mut socket, &mut rest, say);
        match stop.run_until_cancelled(asking).await {
            Some(next) => held = next,
            None => return Ok(()),
        }
        if !held.is_ours {
            socket = None;
        }
    }
}

/// Asks after a delay, until it is served. The reason of a failure is reported once.
async fn ask_again(
    route: &Route,
    listen: Option<Listen>,
    socket: &mut Option<TcpListener>,
    rest: &mut Duration,
    say: fn(&str),
) -> ServedHttp {
    let mut told = String::new();
    let since = Instant::now();
    loop {
        sleep(*rest).await;
        *rest = (*rest * 2).clamp(REST_MIN, REST_MAX);
        if since.elapsed() > SOCKET_WAIT {
            *socket = None;
        }
        match ask(route, listen, socket.as_ref(), |_| {}).await {
            Ok(held) => return held,
            Err(none) => {
                let why = none.to_text();
                if why != told {
                    say(&format!("HTTP is not served; retrying: {why}"));
                    told = why;
                }
            }
        }
    }
}

/// Listens at the address of the lost daemon, before a client is refused there. None if another process
/// listens there.
async fn bind_at_once(listen: Option<Listen>) -> Option<TcpListener> {
    let listen = listen?;
    for _ in 0..BIND_TRIES {
        if let Ok(socket) = TcpListener::bind((listen.ip, listen.port)) {
            return Some(socket);
        }
        sleep(BIND_REST).await;
    }
    None
}

async fn ask(
    route: &Route,
    listen: Option<Listen>,
    socket: Option<&TcpListener>,
    say: fn(&str),
) -> Result<ServedHttp, NoDaemon> {
    let purpose = Purpose::Http(HttpRequest {
        listen: listen.map(|it| it.to_string()),
        variables: Variables::of_process(),
        has_socket: socket.is_some(),
    });
    let reached = reach(route, &purpose).await?;
    reached.warn_of_log_filter(route, say);
    let (mut stream, mut answer) = (reached.stream, reached.answer);
    if let (DaemonReply::SendSocket, Some(socket)) = (&answer, socket) {
        send_listener(&stream, socket).await?;
        let next = receive_line(&mut stream).await?;
        answer = next.ok_or_else(|| anyhow!("the daemon closed the connection"))?;
    }
    match answer {
        DaemonReply::Listening { url, address } => Ok(ServedHttp {
            stream,
            url,
            is_ours: address.is_some(),
            again: address.and_then(|it| it.parse().ok()).or(listen),
        }),
        DaemonReply::Refused(report) => Err(NoDaemon::Reported(report)),
        other => Err(anyhow!("the daemon answered with {other:?}").into()),
    }
}

/// Returns when the daemon is gone, with its last message if it sent one.
async fn wait_for_end(held: &mut ServedHttp) -> Option<DaemonReply> {
    wait_for_line(&mut held.stream).await.ok().flatten()
}
