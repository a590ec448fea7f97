//! The subscribers to changes of resources, over one connection.

use std::{
    collections::HashMap,
    fmt,
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

/// The resources that somebody hears of.
#[derive(Default)]
pub(crate) struct Updates {
    watched: Lock<Vec<Watched>>,
    next: AtomicU64,
    /// Held while the server is told of the first or of the last who hears of a resource.
    pub(crate) turn: Mutex<()>,
    /// By URI, held by whoever listens to a server without subscriptions: of several streams for
    /// one resource, each would tell every sink of each change.
    listening: Lock<HashMap<String, Arc<Mutex<()>>>>,
}

struct Watched {
    id: u64,
    uri: String,
    sink: UpdateSink,
}

impl Updates {
    /// The sink hears of this resource from now on; answers by what to take it away again.
    pub(crate) fn add(&self, uri: &str, sink: UpdateSink) -> u64 {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let uri = uri.to_owned();
        self.watched.lock().push(Watched { id, uri, sink });
        id
    }

    pub(crate) fn remove(&self, id: u64) {
        self.watched.lock().retain(|it| it.id != id);
    }

    /// Returns the number of subscribers of this resource.
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

    /// Passes a notification to those who hear of its resource, or of one that it is a part of.
    pub(crate) fn pass(&self, message: &Message<'_>) {
        let params = message.params.and_then(|params| Fields::of(params.get()));
        let Some(told) = params
            .and_then(|params| params.get("uri"))
            .and_then(text_of)
        else {
            return;
        };
        let hears = |it: &&Watched| told == it.uri || told.starts_with(&it.uri);
        let sinks: Vec<UpdateSink> = {
            let watched = self.watched.lock();
            watched
                .iter()
                .filter(hears)
                .map(|it| Arc::clone(&it.sink))
                .collect()
        };
        for sink in sinks {
            sink(&told);
        }
    }
}

impl fmt::Debug for Updates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Updates")
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
