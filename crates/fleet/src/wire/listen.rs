//! From revision 2026-07-28 on, a server reports changed lists only to listeners.

use std::{sync::Arc, time::Duration};

use rmcp::{
    Peer, RoleClient,
    model::{ServerCapabilities, SubscriptionFilter},
    service::ServiceError,
};
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;
use tracing::debug;

use crate::{ServerInfo, asking::Asking};

/// The rest before listening again after a broken stream. Each failed attempt doubles it.
const REST_MIN: Duration = Duration::from_secs(1);
const REST_MAX: Duration = Duration::from_mins(1);

/// Listens while the connection is open, if the server announces changes of its lists.
pub(super) fn start(
    peer: &Peer<RoleClient>,
    about: &ServerInfo,
    asking: &Arc<Asking>,
) -> Option<AbortOnDropHandle<()>> {
    let info = peer.peer_info()?;
    let filter = list_filter(&info.capabilities);
    let listens = filter != SubscriptionFilter::default() && about.spoken.revision.is_stateless();
    listens.then(|| {
        let listening = listen(peer.clone(), filter, Arc::clone(asking));
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

async fn listen(peer: Peer<RoleClient>, filter: SubscriptionFilter, asking: Arc<Asking>) {
    let mut rest = REST_MIN;
    let mut missed_some = false;
    loop {
        match peer.listen(filter.clone()).await {
            Ok(mut subscription) => {
                rest = REST_MIN;
                if missed_some {
                    asking.note_changed_list();
                }
                while let Ok(Some(_)) = subscription.next().await {
                    asking.note_changed_list();
                }
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jsonrpc::mcp::Revision;
    use jsonrpc::{LineReader, Outbox, Sink};
    use serde_json::{Value, json};
    use tokio::{
        io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, duplex, split},
        time::timeout,
    };

    use super::{REST_MAX, REST_MIN};
    use crate::{
        Spoken,
        asking::Asking,
        changes::Changes,
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
        let (name, changes) = ("any".parse().unwrap(), Arc::<Changes>::default());
        let asking = Asking::new(
            &name,
            Arc::clone(&changes),
            Roots::default(),
            Arc::default(),
        );
        let asking = Arc::new(asking);
        let (transport, feed) = PipeTransport::new(Arc::clone(&outbox), &asking);
        let lines = LineReader::new(input);
        let (pending, mask) = (Arc::default(), Arc::default());
        let _channel = CallChannel::start(pending, lines, outbox, feed, mask, &asking);
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
        let guess = Spoken {
            revision: Revision::FIRST_STATELESS,
            ..Spoken::default()
        };
        let test = async {
            let _open = open_session(transport, &guess, &asking).await.unwrap();
            changes.next().await;
            // The other that was sent comes before the end of the rest.
            let _ = timeout(REST_MIN / 2, changes.next()).await;
            // This one stands for changes between the two streams.
            changes.next().await;
        };
        tokio::select! {
            () = server => panic!("the server has no end"),
            told = timeout(10 * REST_MAX, test) => told.expect("told in time"),
        }
    }
}
