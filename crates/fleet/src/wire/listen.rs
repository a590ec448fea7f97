//! From revision 2026-07-28 on, a server reports changed lists only to listeners.

use std::time::Duration;

use rmcp::{
    Peer, RoleClient,
    model::{ServerCapabilities, SubscriptionFilter},
    service::{ServiceError, Subscription},
};
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;
use tracing::debug;

use crate::{ServerInfo, changes::OnListChanged};

/// The rest before listening again after a broken stream. Each failed attempt doubles it.
const REST_MIN: Duration = Duration::from_secs(1);
const REST_MAX: Duration = Duration::from_mins(1);

/// Listens while the connection is open, if the server announces changes of its lists.
pub(super) fn start(
    peer: &Peer<RoleClient>,
    about: &ServerInfo,
    on_list_changed: OnListChanged,
) -> Option<AbortOnDropHandle<()>> {
    let info = peer.peer_info()?;
    let filter = list_filter(&info.capabilities);
    let listens = filter != SubscriptionFilter::default() && about.spoken.revision.is_stateless();
    listens.then(|| {
        let listening = listen(peer.clone(), filter, on_list_changed);
        AbortOnDropHandle::new(tokio::spawn(listening))
    })
}

/// Returns the lists whose changes the server announces.
fn list_filter(said: &ServerCapabilities) -> SubscriptionFilter {
    let (tools, prompts) = (said.tools.as_ref(), said.prompts.as_ref());
    let resources = said.resources.as_ref();
    let is_said = |told: Option<bool>| told.filter(|tells| *tells);
    let mut filter = SubscriptionFilter::new();
    filter.tools_list_changed = is_said(tools.and_then(|it| it.list_changed));
    filter.prompts_list_changed = is_said(prompts.and_then(|it| it.list_changed));
    filter.resources_list_changed = is_said(resources.and_then(|it| it.list_changed));
    filter
}

async fn listen(
    peer: Peer<RoleClient>,
    filter: SubscriptionFilter,
    on_list_changed: OnListChanged,
) {
    let mut rest = REST_MIN;
    let mut missed_some = false;
    loop {
        match peer.listen(filter.clone()).await {
            Ok(subscription) => {
                rest = REST_MIN;
                if missed_some {
                    on_list_changed();
                }
                follow(subscription, &on_list_changed).await;
            }
            Err(error @ (ServiceError::McpError(_) | ServiceError::UnexpectedResponse)) => {
                debug!(%error, "the server does not let us listen");
                return;
            }
            Err(error) => debug!(%error, "listening failed"),
        }
        if peer.is_transport_closed() {
            return;
        }
        missed_some = true;
        sleep(rest).await;
        rest = (rest * 2).min(REST_MAX);
    }
}

/// Follows the stream to its end.
async fn follow(mut subscription: Subscription, on_list_changed: &OnListChanged) {
    while let Ok(Some(_)) = subscription.next().await {
        on_list_changed();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use jsonrpc::mcp::Revision;
    use jsonrpc::{LineReader, Outbox, Sink};
    use serde_json::{Value, json};
    use tokio::{
        io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, duplex, split},
        sync::Notify,
        time::timeout,
    };

    use super::REST_MAX;
    use crate::{
        Spoken,
        channel::CallChannel,
        roots::Roots,
        wire::{PipeTransport, open_session},
    };

    /// Returns the messages of a stateless child after a request.
    fn says(asked: &Value, listens: usize) -> Vec<Value> {
        let id = &asked["id"];
        let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
        let notice = |method: &str, mut params: Value| {
            params["_meta"] = meta.clone();
            json!({"jsonrpc": "2.0", "method": method, "params": params})
        };
        let result = |result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
        match asked["method"].as_str() {
            Some("server/discover") => vec![result(json!({
                "resultType": "complete",
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {"listChanged": true}},
                "ttlMs": 0,
                "cacheScope": "private",
            }))],
            Some("subscriptions/listen") => {
                let filter = json!({"notifications": {"toolsListChanged": true}});
                let acknowledged = notice("notifications/subscriptions/acknowledged", filter);
                let changed = notice("notifications/tools/list_changed", json!({}));
                let end = result(json!({"resultType": "complete", "_meta": meta}));
                match listens {
                    1 => vec![acknowledged, changed.clone(), changed, end],
                    _ => vec![acknowledged],
                }
            }
            _ => Vec::new(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_child_is_listened_to_and_again_when_its_stream_ended() {
        let (ours, theirs) = duplex(64 * 1024);
        let (input, output) = split(ours);
        let outbox = Outbox::new(Sink::stream(output));
        let (transport, feed) = PipeTransport::new(Arc::clone(&outbox), Arc::new(|| {}));
        let _channel = CallChannel::start(
            LineReader::new(input),
            outbox,
            feed,
            Arc::default(),
            Arc::default(),
        );
        let (requests, mut answers) = split(theirs);
        let server = async move {
            let mut requests = BufReader::new(requests).lines();
            let mut listens = 0;
            while let Ok(Some(line)) = requests.next_line().await {
                let asked: Value = serde_json::from_str(&line).unwrap();
                listens += usize::from(asked["method"] == "subscriptions/listen");
                for said in says(&asked, listens) {
                    let line = format!("{said}\n");
                    answers.write_all(line.as_bytes()).await.unwrap();
                }
            }
        };
        let changes = Arc::new((AtomicUsize::new(0), Notify::new()));
        let counter = Arc::clone(&changes);
        let on_list_changed = Arc::new(move || {
            counter.0.fetch_add(1, Ordering::SeqCst);
            counter.1.notify_one();
        });
        let guess = Spoken {
            revision: Revision::FIRST_STATELESS,
            ..Spoken::default()
        };
        let test = async {
            let _open = open_session(transport, &guess, on_list_changed, &Roots::default())
                .await
                .unwrap();
            // Two were sent; the third stands for changes between the two streams.
            while changes.0.load(Ordering::SeqCst) < 3 {
                changes.1.notified().await;
            }
        };
        tokio::select! {
            () = server => panic!("the server has no end"),
            told = timeout(10 * REST_MAX, test) => told.expect("told in time"),
        }
    }
}
