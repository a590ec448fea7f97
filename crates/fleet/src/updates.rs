//! The subscribers to changes of resources, over one connection.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use jsonrpc::{Fields, Message, text_of};
use parking_lot::Mutex as Lock;
use tokio::sync::Mutex;

/// Receives the URI of a resource that changed. Called on the task that reads from the server, so
/// it must not block.
pub type UpdateSink = Arc<dyn Fn(&str) + Send + Sync>;

#[derive(Default)]
pub(crate) struct Updates {
    watched: Lock<Vec<SubscribedSink>>,
    next: AtomicU64,
    /// Held while the server is sent the first subscription of a resource, or the end of the last.
    pub(crate) turn: Mutex<()>,
    /// By URI; held by the subscriber that listens to a server without subscriptions. With several streams
    /// for one resource, every sink would get each change several times.
    listening: Lock<HashMap<String, Arc<Mutex<()>>>>,
}

struct SubscribedSink {
    id: u64,
    uri: String,
    sink: UpdateSink,
}

impl Updates {
    /// Adds a subscriber of this resource. Returns the id with which to remove it.
    pub(crate) fn add(&self, uri: &str, sink: UpdateSink) -> u64 {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let uri = uri.to_owned();
        self.watched.lock().push(SubscribedSink { id, uri, sink });
        id
    }

    pub(crate) fn remove(&self, id: u64) {
        self.watched.lock().retain(|it| it.id != id);
    }

    pub(crate) fn count(&self, uri: &str) -> usize {
        let watched = self.watched.lock();
        watched.iter().filter(|it| it.uri == uri).count()
    }

    /// Returns the lock that orders subscriptions to this resource.
    pub(crate) fn listening(&self, uri: &str) -> Arc<Mutex<()>> {
        let mut listening = self.listening.lock();
        listening.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(listening.entry(uri.to_owned()).or_default())
    }

    /// Passes a notification to the subscribers of its resource, and of resources that contain it.
    pub(crate) fn pass(&self, message: &Message<'_>) {
        let params = message.params.and_then(|params| Fields::of(params.get()));
        let told = params.and_then(|params| text_of(params.get("uri")?));
        let Some(told) = told else { return };
        let hears = |it: &&SubscribedSink| told == it.uri || told.starts_with(&it.uri);
        let watched = self.watched.lock();
        let sinks = watched.iter().filter(hears).map(|it| Arc::clone(&it.sink));
        let sinks: Vec<UpdateSink> = sinks.collect();
        drop(watched);
        for sink in sinks {
            sink(&told);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_hears_of_a_resource_hears_of_its_parts_and_of_no_other() {
        let updates = Updates::default();
        let heard = Arc::new(Lock::new(Vec::new()));
        let sink = |name: &'static str| -> UpdateSink {
            let heard = Arc::clone(&heard);
            Arc::new(move |uri| heard.lock().push(format!("{name} {uri}")))
        };
        let one = updates.add("a:1", sink("one"));
        updates.add("a:1/", sink("two"));
        updates.add("a:2", sink("three"));
        assert_eq!(updates.count("a:1"), 1);
        let tell = |uri: &str| {
            let line = format!(
                r#"{{"method":"notifications/resources/updated","params":{{"uri":"{uri}"}}}}"#
            );
            updates.pass(&Message::parse(line.as_bytes()).unwrap());
        };
        tell("a:1/x");
        updates.remove(one);
        tell("a:1");
        tell("a:2");
        assert_eq!(*heard.lock(), ["one a:1/x", "two a:1/x", "three a:2"]);
    }
}
