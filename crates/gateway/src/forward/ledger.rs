//! The URIs that were sent to a client, each with the server that sent it: so a link in a tool's
//! result is read from the server that sent it, whatever its URI looks like.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use jsonrpc::{Fields, Json, KnownString, text_of};
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tool::ServerName;

/// The number of URIs remembered for one client; the oldest are dropped.
const URIS_MAX: usize = 4_096;

/// The longest URI that is remembered, in bytes: URIs that hold data are not read again.
const URI_BYTES_MAX: usize = 4 * 1024;

/// The number of clients without a session that are remembered; the oldest are dropped.
const CLIENTS_MAX: usize = 32;

#[derive(Debug, Default)]
pub(crate) struct UriLedger(Mutex<Noted>);

#[derive(Debug, Default)]
struct Noted {
    senders: HashMap<Arc<str>, ServerName>,
    /// The oldest first.
    order: VecDeque<Arc<str>>,
}

impl UriLedger {
    /// The server that sent the URI last.
    pub(super) fn sender(&self, uri: &str) -> Option<ServerName> {
        self.0.lock().senders.get(uri).cloned()
    }

    fn note(&self, server: &ServerName, uri: &str) {
        if uri.len() > URI_BYTES_MAX {
            return;
        }
        let mut noted = self.0.lock();
        if let Some(sender) = noted.senders.get_mut(uri) {
            sender.clone_from(server);
            return;
        }
        if noted.order.len() >= URIS_MAX
            && let Some(oldest) = noted.order.pop_front()
        {
            noted.senders.remove(&oldest);
        }
        let uri: Arc<str> = uri.into();
        noted.senders.insert(Arc::clone(&uri), server.clone());
        noted.order.push_back(uri);
    }

    /// Adds the links and resources of a result: of a tool, a prompt or a resource.
    pub(crate) fn note_result(&self, server: &ServerName, result: &Json) {
        if !result.may_contain(KnownString::Uri) {
            return;
        }
        let Some(fields) = Fields::of(result.as_str()) else {
            return;
        };
        for block in list(fields.get("content")) {
            self.note_block(server, block);
        }
        for message in list(fields.get("messages")) {
            let content = Fields::of(message.get()).and_then(|it| it.get("content"));
            for block in list(content) {
                self.note_block(server, block);
            }
        }
        for content in list(fields.get("contents")) {
            self.note_uri(server, content);
        }
    }

    fn note_block(&self, server: &ServerName, block: &RawValue) {
        let Some(fields) = Fields::of(block.get()) else {
            return;
        };
        let kind = fields.get("type").and_then(text_of);
        match (kind.as_deref(), fields.get("resource")) {
            (Some("resource_link"), _) => self.note_uri(server, block),
            (Some("resource"), Some(resource)) => self.note_uri(server, resource),
            _ => {}
        }
    }

    fn note_uri(&self, server: &ServerName, holder: &RawValue) {
        let uri = Fields::of(holder.get()).and_then(|fields| fields.get("uri"));
        if let Some(uri) = uri.and_then(text_of) {
            self.note(server, &uri);
        }
    }
}

/// The elements of a list; any other value as the only element.
fn list(raw: Option<&RawValue>) -> Vec<&RawValue> {
    let Some(raw) = raw else { return Vec::new() };
    serde_json::from_str(raw.get()).unwrap_or_else(|_| vec![raw])
}

/// The ledgers of clients whose requests stand alone, by the identity of the client.
#[derive(Debug, Default)]
pub(crate) struct Ledgers(Mutex<VecDeque<(Arc<str>, Arc<UriLedger>)>>);

impl Ledgers {
    pub(crate) fn of(&self, client: &str) -> Arc<UriLedger> {
        let mut ledgers = self.0.lock();
        let found = ledgers.iter().position(|(name, _)| **name == *client);
        let ledger = found.and_then(|at| ledgers.remove(at));
        let ledger = ledger.unwrap_or_else(|| (client.into(), Arc::default()));
        if ledgers.len() >= CLIENTS_MAX {
            ledgers.pop_front();
        }
        let shared = Arc::clone(&ledger.1);
        ledgers.push_back(ledger);
        shared
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_every_place_are_noted_and_the_last_sender_counts() {
        let (one, two): (ServerName, ServerName) = ("one".parse().unwrap(), "two".parse().unwrap());
        let ledger = UriLedger::default();
        let result = r#"{"content":[{"type":"text","text":"x","uri":"a:0"},
            {"type":"resource_link","uri":"a:1"},{"type":"resource","resource":{"uri":"a:2"}}],
            "messages":[{"content":{"type":"resource_link","uri":"a:3"}}],
            "contents":[{"uri":"a:4"}]}"#;
        let note =
            |server, result: &str| ledger.note_result(server, &Json::of_built(result.to_owned()));
        note(&one, result);
        let sender = |uri: &str| ledger.sender(uri);
        assert_eq!(sender("a:0"), None);
        for uri in ["a:1", "a:2", "a:3", "a:4"] {
            assert_eq!(sender(uri).as_ref(), Some(&one), "{uri}");
        }
        note(
            &two,
            r#"{"content":[{"type":"resource_link","uri":"a:1"}]}"#,
        );
        assert_eq!(sender("a:1"), Some(two));
    }

    #[test]
    fn a_ledger_is_bounded_and_so_are_ledgers() {
        let one = "one".parse().unwrap();
        let ledger = UriLedger::default();
        (0..=URIS_MAX).for_each(|n| ledger.note(&one, &format!("a:{n}")));
        assert_eq!(
            (ledger.sender("a:0"), ledger.sender("a:1")),
            (None, Some(one))
        );
        let ledgers = Ledgers::default();
        let first = ledgers.of("0");
        (1..CLIENTS_MAX).for_each(|n| drop(ledgers.of(&n.to_string())));
        assert!(Arc::ptr_eq(&first, &ledgers.of("0")));
        drop(ledgers.of("new"));
        assert!(Arc::ptr_eq(&first, &ledgers.of("0")));
        assert_eq!(ledgers.0.lock().len(), CLIENTS_MAX);
    }
}
