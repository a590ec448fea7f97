//! Messages to the server, each a `POST`.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{StreamExt as _, stream::FuturesUnordered};
use http::{Method, header};
use jsonrpc::{Line, LineReader, Message, frame};
use parking_lot::Mutex;
use reqwest::Url;
use tokio::{sync::mpsc, time::timeout};
use tokio_util::sync::CancellationToken;

use super::super::http::{HttpRefusal, Site};
use crate::error::Denied;

/// The time for running posts after the connection was closed.
const CLOSE_WAIT: Duration = Duration::from_secs(1);

/// The most concurrent posts. Servers respond at once, so this is seldom reached.
pub(super) const POSTS_MAX: usize = 64;

/// Posts each line. The handshake is posted in order; later messages do not wait for a post that hangs.
pub(super) async fn post_lines(mut lines: LineReader, post: Post, failed: mpsc::Sender<Bytes>) {
    let _ends = post.open.clone().drop_guard();
    let mut posts = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            () = post.open.cancelled() => return,
            Some(failure) = posts.next(), if !posts.is_empty() => {
                report(&failed, failure).await;
            }
            line = lines.next(), if posts.len() < POSTS_MAX => match line {
                Ok(Some(Line::Whole(line))) if ends_handshake(&line) => {
                    report(&failed, post.send(line).await).await;
                }
                Ok(Some(Line::Whole(line))) => posts.push(post.send(line)),
                Ok(Some(Line::TooLong { .. })) => {}
                Ok(None) | Err(_) => break,
            },
        }
    }
    let rest = async { while posts.next().await.is_some() {} };
    let _ = timeout(CLOSE_WAIT, rest).await;
}

async fn report(failed: &mpsc::Sender<Bytes>, failure: Option<Bytes>) {
    if let Some(failure) = failure {
        // Without a reader, the connection has ended.
        let _ = failed.send(failure).await;
    }
}

fn ends_handshake(line: &Bytes) -> bool {
    let message = Message::parse(line);
    message.and_then(|message| message.method).as_deref() == Some("notifications/initialized")
}

/// The URL to which messages are posted.
pub(super) struct Post {
    pub(super) site: Site,
    pub(super) endpoint: Url,
    pub(super) denied: Arc<Mutex<Option<Denied>>>,
    /// Cancelled when the server denies access: every further message would fail.
    pub(super) open: CancellationToken,
}

impl Post {
    /// Posts one message. Returns an error response if a request did not reach the server.
    async fn send(&self, line: Bytes) -> Option<Bytes> {
        let post = self.site.request(Method::POST, self.endpoint.clone());
        let post = post.header(header::CONTENT_TYPE, "application/json");
        let (status, why) = match self.site.send(post.body(line.clone())).await {
            Ok(response) if response.status().is_success() => return None,
            Ok(response) => {
                let refusal = HttpRefusal::read(response).await;
                let why = self.site.mask.apply(&refusal.to_string());
                if let Some(denied) = refusal.denied(&why) {
                    *self.denied.lock() = Some(denied);
                    self.open.cancel();
                    return None;
                }
                (refusal.status.as_u16(), why)
            }
            Err(error) => (0, self.site.mask.apply(&error.explain())),
        };
        let message = Message::parse(&line)?;
        message.method?;
        Some(frame::error(message.id?.get(), status, &why))
    }
}
