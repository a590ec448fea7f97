//! Resources that somebody wants to hear of: watched for as long as he wants, whatever becomes of
//! the server meanwhile.

use std::{fmt, sync::Arc, time::Duration};

use jsonrpc::Json;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use tool::{ClientId, ServerName};

use crate::{
    Asks, CallError, Failure, Fleet, Ran, Request, UpdateSink,
    error::{Denied, RequestError},
    keeper::choose_rest,
    limits::HEALTHY_AFTER,
    link::Link,
    roster::Roster,
    server::LeasedLink,
};

/// A subscriber to changes of a resource.
#[derive(Clone)]
pub struct Subscriber {
    /// The client; its connection may have servers of its own.
    pub client: Option<ClientId>,
    /// Answers the requests that a server of its own sends when it starts.
    pub asks: Option<Arc<dyn Asks>>,
    /// Called on each change.
    pub sink: UpdateSink,
}

impl fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Subscriber")
    }
}

/// A resource is watched until this is dropped.
#[derive(Debug)]
pub struct Watch(#[expect(dead_code, reason = "held for its end")] AbortOnDropHandle<()>);

impl Fleet {
    /// Calls the sink on every change of a resource. The server is started if need be, and is not
    /// stopped for idleness meanwhile; when it ended, the subscription is renewed and the resource
    /// counts as changed. The error is that of the first attempt.
    pub async fn watch(
        &self,
        server: &ServerName,
        uri: &str,
        subscriber: Subscriber,
    ) -> Result<Watch, CallError> {
        let wish = Wish {
            roster: self.roster(),
            server: server.clone(),
            uri: uri.to_owned(),
            subscriber,
        };
        let watched = wish.begin().await?;
        Ok(Watch(AbortOnDropHandle::new(tokio::spawn(
            wish.keep(watched),
        ))))
    }
}

/// A subscription that is to be kept.
struct Wish {
    roster: Arc<Roster>,
    server: ServerName,
    uri: String,
    subscriber: Subscriber,
}

/// A subscription over one connection.
struct Watched {
    /// Before the lease: it asks for the connection when it goes.
    place: Place,
    _leased: LeasedLink,
    retired: CancellationToken,
}

impl Wish {
    async fn keep(self, mut watched: Watched) {
        let mut rests = Rests::default();
        loop {
            let began = Instant::now();
            watched.ended(&self.uri, &self.subscriber.sink).await;
            drop(watched);
            rests.note_held(began.elapsed());
            watched = loop {
                sleep(rests.next()).await;
                if let Ok(again) = self.begin().await {
                    break again;
                }
            };
            (self.subscriber.sink)(&self.uri);
        }
    }

    async fn begin(&self) -> Result<Watched, CallError> {
        let Subscriber { client, asks, .. } = &self.subscriber;
        let (server, leased) = loop {
            let (client, asks) = (client.as_ref(), asks.as_ref());
            let server = self.roster.find(&self.server, client, asks)?;
            match server.ready().await {
                Ok(leased) => break (server, leased),
                // Another has its place.
                Err(_) if server.is_retired() && !self.roster.is_stopping() => {}
                Err(not_ready) => {
                    return Err(CallError::Unavailable {
                        server: self.server.clone(),
                        failure: not_ready.failure,
                        tries: not_ready.tries,
                        ran: Ran::No,
                    });
                }
            }
        };
        let asking = self.ask(&leased.link);
        let limit = server.spec.call_timeout;
        let place = timeout(limit, asking).await.unwrap_or_else(|_| {
            Err(CallError::TimedOut {
                server: self.server.clone(),
                limit,
                ran: Ran::Maybe,
                held_up: None,
            })
        })?;
        Ok(Watched {
            place,
            _leased: leased,
            retired: server.retired.clone(),
        })
    }

    /// The server is asked by the first who wants to hear of this resource.
    async fn ask(&self, link: &Arc<Link>) -> Result<Place, CallError> {
        let _turn = link.updates().turn.lock().await;
        let id = link
            .updates()
            .add(&self.uri, Arc::clone(&self.subscriber.sink));
        let place = Place {
            link: Arc::clone(link),
            uri: self.uri.clone(),
            id,
        };
        if !is_stateless(link) && link.updates().count(&self.uri) == 1 {
            let asked = link.ask(&request("resources/subscribe", &self.uri)).await;
            asked.map_err(|error| self.explain(error))?;
        }
        Ok(place)
    }

    fn explain(&self, error: RequestError) -> CallError {
        let server = self.server.clone();
        let failure = match error {
            RequestError::Protocol(error) => return CallError::Protocol { server, error },
            RequestError::Lost(_) | RequestError::Unsent => {
                Failure::new("it ended under the request")
            }
            RequestError::Failed(why)
            | RequestError::Unreached(why)
            | RequestError::Denied(Denied { why, .. }) => Failure::new(why),
        };
        CallError::Unavailable {
            server,
            failure,
            tries: 0,
            ran: Ran::Maybe,
        }
    }
}

/// The rests between attempts to watch a resource again.
#[derive(Default)]
struct Rests {
    /// Attempts since the resource was last watched for long.
    tries: u32,
}

impl Rests {
    fn next(&mut self) -> Duration {
        self.tries += 1;
        choose_rest(self.tries)
    }

    /// A resource that was watched for so long is watched again soon.
    fn note_held(&mut self, held: Duration) {
        if held >= HEALTHY_AFTER {
            self.tries = 0;
        }
    }
}

impl Watched {
    /// Returns when nothing more will be heard over this connection.
    async fn ended(&self, uri: &str, sink: &UpdateSink) {
        let link = &self.place.link;
        tokio::select! {
            () = link.ended() => {}
            () = self.retired.cancelled() => {}
            () = listen(link, uri, sink) => {}
        }
    }
}

/// Listens, where there are no subscriptions: with one stream for all who watch the resource. When
/// whoever has the stream goes, the next one listens, and the resource may have changed meanwhile.
async fn listen(link: &Link, uri: &str, sink: &UpdateSink) {
    if !is_stateless(link) {
        return std::future::pending().await;
    }
    let turn = link.updates().listening(uri);
    let _listening = match turn.try_lock() {
        Ok(first) => first,
        Err(_) => {
            let next = turn.lock().await;
            sink(uri);
            next
        }
    };
    let filter = json!({"resourceSubscriptions": [uri]}).to_string();
    let filter = vec![("notifications".to_owned(), Json::of_built(filter))];
    let _ = link
        .ask(&Request::new("subscriptions/listen", filter))
        .await;
}

fn is_stateless(link: &Link) -> bool {
    link.about().spoken.revision.is_stateless()
}

fn request(method: &'static str, uri: &str) -> Request {
    let uri = Json::of_built(Value::from(uri).to_string());
    Request::new(method, vec![("uri".to_owned(), uri)])
}

/// A place among those who hear of a resource. When the last is given up the server is told.
struct Place {
    link: Arc<Link>,
    uri: String,
    id: u64,
}

/// The server need not answer that nobody listens any more for long.
const UNSUBSCRIBE_WAIT: Duration = Duration::from_secs(5);

impl Drop for Place {
    fn drop(&mut self) {
        self.link.updates().remove(self.id);
        let is_last = self.link.updates().count(&self.uri) == 0;
        if !is_last || is_stateless(&self.link) || self.link.has_ended() {
            return;
        }
        let (link, uri) = (Arc::clone(&self.link), std::mem::take(&mut self.uri));
        let telling = async move {
            let _lease = link.activity().begin();
            let _turn = link.updates().turn.lock().await;
            if link.updates().count(&uri) == 0 {
                let asking = request("resources/unsubscribe", &uri);
                let _ = timeout(UNSUBSCRIBE_WAIT, link.ask(&asking)).await;
            }
        };
        // Without a runtime everything ends.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(telling);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Rests;
    use crate::limits::{HEALTHY_AFTER, REST_MIN};

    #[test]
    fn a_resource_that_was_watched_for_long_is_watched_again_soon() {
        let mut rests = Rests::default();
        let grown = (0..20).map(|_| rests.next()).last();
        rests.note_held(HEALTHY_AFTER / 2);
        assert!(grown > Some(REST_MIN) && rests.next() > REST_MIN);
        rests.note_held(HEALTHY_AFTER);
        assert!((Duration::from_millis(1)..=REST_MIN).contains(&rests.next()));
    }
}
