//! Subscription resources. A watch outlives restarts of its server.

use std::{fmt, sync::Arc, time::Duration};

use jsonrpc::{Json, quote};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use tool::{ClientId, ServerName};

use crate::{
    Asks, CallError, Failure, Ran, Request, StartCheck, UpdateSink, error::RequestError,
    keeper::choose_rest, limits::HEALTHY_AFTER, link::Link, roster::Roster, server::LeasedLink,
};

/// A watched resource: the watch ends when this is dropped.
pub type WatchGuard = Box<dyn Send + Sync>;

/// A subscriber to changes of a resource.
#[derive(Clone)]
pub struct Subscriber {
    /// The client; its connection may have servers of its own.
    pub client: Option<ClientId>,
    /// Answers the requests of the server, if the server belongs to the client alone.
    pub asks: Option<Arc<dyn Asks>>,
    /// Checks immediately before each subscription that the rules allow it; `None` if no rules apply.
    pub start_check: Option<Arc<dyn StartCheck>>,
    /// Called on each change.
    pub sink: UpdateSink,
}

impl fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Subscriber")
    }
}

/// The implementation of [`CallServers::watch`](crate::CallServers::watch).
pub(crate) async fn watch(
    roster: Arc<Roster>,
    server: &ServerName,
    uri: &str,
    subscriber: Subscriber,
) -> Result<WatchGuard, CallError> {
    let wish = Wish {
        roster,
        server: server.clone(),
        uri: uri.to_owned(),
        subscriber,
    };
    let watched = wish.begin().await?;
    let watching = tokio::spawn(wish.keep(watched));
    Ok(Box::new(AbortOnDropHandle::new(watching)))
}

/// A watch: the subscription is renewed whenever it ends, until the rules refuse it.
struct Wish {
    roster: Arc<Roster>,
    server: ServerName,
    uri: String,
    subscriber: Subscriber,
}

/// A subscription over one connection.
struct Subscription {
    /// Dropped before the lease, because its drop uses the connection.
    place: ResourceSubscriber,
    _leased: LeasedLink,
    retired: CancellationToken,
}

impl Wish {
    async fn keep(self, mut watched: Subscription) {
        let mut rests = Rests::default();
        loop {
            let began = Instant::now();
            watched.ended(&self.uri, &self.subscriber.sink).await;
            drop(watched);
            rests.note_held(began.elapsed());
            watched = loop {
                sleep(rests.next()).await;
                match self.begin().await {
                    Ok(again) => break again,
                    Err(CallError::Refused(_)) => return,
                    Err(_) => {}
                }
            };
            (self.subscriber.sink)(&self.uri);
        }
    }

    async fn begin(&self) -> Result<Subscription, CallError> {
        let subscriber = &self.subscriber;
        let request = Request {
            start_check: subscriber.start_check.clone(),
            ..request("resources/subscribe", &self.uri)
        };
        let (server, leased) = loop {
            let (client, asks) = (subscriber.client.as_ref(), subscriber.asks.as_ref());
            let server = self.roster.find(&self.server, client, asks)?;
            match server.ready_for_call(&request).await {
                Ok(leased) => break (server, leased),
                Err(CallError::Unavailable { ran: Ran::No, .. })
                    if self.roster.is_replaced(&server) => {}
                Err(error) => return Err(error),
            }
        };
        let asking = self.ask(&leased.link, &request);
        let limit = server.spec.timeout;
        let place = timeout(limit, asking).await.unwrap_or_else(|_| {
            Err(CallError::TimedOut {
                server: self.server.clone(),
                limit,
                ran: Ran::Maybe,
                held_up: None,
            })
        })?;
        Ok(Subscription {
            place,
            _leased: leased,
            retired: server.retired.clone(),
        })
    }

    /// Adds the subscriber. The first one of a resource subscribes at the server.
    async fn ask(
        &self,
        link: &Arc<Link>,
        request: &Request,
    ) -> Result<ResourceSubscriber, CallError> {
        let _turn = link.updates().turn.lock().await;
        let sink = Arc::clone(&self.subscriber.sink);
        let id = link.updates().add(&self.uri, sink);
        let place = ResourceSubscriber {
            link: Arc::clone(link),
            uri: self.uri.clone(),
            id,
        };
        if !is_stateless(link) && link.updates().count(&self.uri) == 1 {
            let asked = link.ask(request).await;
            asked.map_err(|error| self.explain(error))?;
        }
        Ok(place)
    }

    fn explain(&self, error: RequestError) -> CallError {
        if let RequestError::Protocol(error) = error {
            let server = self.server.clone();
            return CallError::Protocol { server, error };
        }
        let failure = Failure::new(error.to_string());
        CallError::unavailable(&self.server, failure, 0, Ran::Maybe)
    }
}

/// The rests between attempts to watch a resource again.
#[derive(Default)]
struct Rests {
    /// The number of attempts since the last long subscription.
    tries: u32,
}

impl Rests {
    fn next(&mut self) -> Duration {
        self.tries += 1;
        choose_rest(self.tries)
    }

    /// Records the duration of a subscription. After a long one, the next attempt is soon.
    fn note_held(&mut self, held: Duration) {
        if held >= HEALTHY_AFTER {
            self.tries = 0;
        }
    }
}

impl Subscription {
    /// Waits until this connection sends no more changes.
    async fn ended(&self, uri: &str, sink: &UpdateSink) {
        let link = &self.place.link;
        tokio::select! {
            () = link.ended() => {}
            () = self.retired.cancelled() => {}
            () = listen(link, uri, sink) => {}
        }
    }
}

/// Listens to a server without subscriptions, over one stream for all subscribers of the resource. When
/// the subscriber with the stream leaves, the next one listens, and the resource may have changed
/// meanwhile.
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
    let filter = vec![("notifications".into(), Json::of_built(filter))];
    let _ = link
        .ask(&Request::new("subscriptions/listen", filter))
        .await;
}

fn is_stateless(link: &Link) -> bool {
    link.about.spoken.revision.is_stateless()
}

fn request(method: &'static str, uri: &str) -> Request {
    let uri = Json::of_built(quote(uri));
    Request::new(method, vec![("uri".into(), uri)])
}

/// A subscriber of a resource. When the last one is dropped, the server gets an unsubscription.
struct ResourceSubscriber {
    link: Arc<Link>,
    uri: String,
    id: u64,
}

/// The timeout of an unsubscription.
const UNSUBSCRIBE_WAIT: Duration = Duration::from_secs(5);

impl Drop for ResourceSubscriber {
    fn drop(&mut self) {
        self.link.updates().remove(self.id);
        let is_last = self.link.updates().count(&self.uri) == 0;
        if !is_last || is_stateless(&self.link) || self.link.has_ended() {
            return;
        }
        let (link, uri) = (Arc::clone(&self.link), std::mem::take(&mut self.uri));
        let telling = async move {
            let _lease = link.activity.begin();
            let _turn = link.updates().turn.lock().await;
            if link.updates().count(&uri) == 0 {
                let asking = request("resources/unsubscribe", &uri);
                let _ = timeout(UNSUBSCRIBE_WAIT, link.ask(&asking)).await;
            }
        };
        // Without a runtime, the whole program is ending.
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
