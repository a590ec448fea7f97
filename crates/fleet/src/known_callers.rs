//! The callers over HTTP that were seen, with the values of their last requests.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use tool::HttpCaller;

use crate::limits::CALLERS_KNOWN_MAX;

/// The callers over HTTP that were seen. Tokens are exchanged for others with the last one of a caller,
/// and a server is surveyed for a caller that it has.
#[derive(Debug, Default)]
pub struct KnownCallers(Mutex<CallerTable>);

#[derive(Debug, Default)]
struct CallerTable {
    /// Each with the number of its last request.
    callers: HashMap<Arc<str>, (u64, Arc<HttpCaller>)>,
    requests: u64,
}

impl KnownCallers {
    /// Remembers the values of a request. Returns true if the caller is new.
    pub(crate) fn meet(&self, caller: &Arc<HttpCaller>) -> bool {
        let mut table = self.0.lock();
        table.requests += 1;
        let last = (table.requests, Arc::clone(caller));
        if let Some(known) = table.callers.get_mut(&caller.name) {
            *known = last;
            return false;
        }
        if table.callers.len() >= CALLERS_KNOWN_MAX {
            let oldest = table.callers.iter().min_by_key(|(_, (at, _))| *at);
            let oldest = oldest.map(|(name, _)| Arc::clone(name));
            oldest.and_then(|name| table.callers.remove(&name));
        }
        table.callers.insert(Arc::clone(&caller.name), last);
        true
    }

    pub(crate) fn find(&self, name: &str) -> Option<Arc<HttpCaller>> {
        let table = self.0.lock();
        table.callers.get(name).map(|(_, it)| Arc::clone(it))
    }

    /// Lists the callers, the last one first.
    pub(crate) fn list(&self) -> Vec<Arc<HttpCaller>> {
        let mut all: Vec<_> = self.0.lock().callers.values().cloned().collect();
        all.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        all.into_iter().map(|(_, caller)| caller).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tool::HttpCaller;

    use super::{CALLERS_KNOWN_MAX, KnownCallers};

    fn caller(name: &str, token: &str) -> Arc<HttpCaller> {
        let values = [(HttpCaller::AUTHORIZATION, format!("Bearer {token}"))];
        Arc::new(HttpCaller {
            name: name.into(),
            values: values.map(|(name, value)| (name.to_owned(), value)).into(),
            origin: "http://127.0.0.1:1".into(),
        })
    }

    #[test]
    fn the_last_values_of_a_caller_count_and_the_oldest_caller_is_forgotten() {
        let known = KnownCallers::default();
        assert!(known.meet(&caller("ann", "1")));
        assert!(known.meet(&caller("bob", "2")));
        assert!(!known.meet(&caller("ann", "3")));
        assert_eq!(known.find("ann").unwrap().token(), Some("3"));
        let names = |known: &KnownCallers| -> Vec<_> {
            known.list().iter().map(|it| it.name.to_string()).collect()
        };
        assert_eq!(names(&known), ["ann", "bob"]);
        for at in 0..CALLERS_KNOWN_MAX - 1 {
            known.meet(&caller(&at.to_string(), "x"));
        }
        assert!(known.find("bob").is_none() && known.find("ann").is_some());
    }
}
