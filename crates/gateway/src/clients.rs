//! The clients that are served now, for whoever asks who they are.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use dashmap::DashMap;
use jsonrpc::{Fields, text_of};
use serde_json::value::RawValue;

use super::session::Seat;

/// One client session.
#[derive(Debug)]
pub struct Client {
    pub number: u64,
    pub seat: Seat,
    pub since: SystemTime,
    /// As it calls itself, once it has.
    name: OnceLock<Named>,
    calls: AtomicU64,
}

#[derive(Debug, Clone)]
pub struct Named {
    pub name: String,
    pub version: Option<String>,
}

/// The longest name or version that is kept, in characters.
const NAME_CHARS_MAX: usize = 100;

impl Client {
    pub fn named(&self) -> Option<&Named> {
        self.name.get()
    }

    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    pub(super) fn count_call(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes the name from a `clientInfo` and answers it; the first name stays.
    pub(super) fn hear(&self, client_info: &RawValue) -> Option<String> {
        let info = Fields::of(client_info.get())?;
        let text = |key| {
            let text = text_of(info.get(key)?)?;
            Some(printable::one_line_of(&text, NAME_CHARS_MAX))
        };
        let name = text("name")?;
        let named = Named {
            name: name.clone(),
            version: text("version"),
        };
        self.name.set(named).is_ok().then_some(name)
    }
}

/// All of them, by number.
#[derive(Debug, Default)]
pub struct Clients {
    last: AtomicU64,
    here: DashMap<u64, Arc<Client>>,
}

impl Clients {
    pub(super) fn enter(&self, seat: Seat) -> Arc<Client> {
        let client = Arc::new(Client {
            number: self.last.fetch_add(1, Ordering::Relaxed),
            seat,
            since: SystemTime::now(),
            name: OnceLock::new(),
            calls: AtomicU64::new(0),
        });
        if !client.seat.passes_by {
            self.here.insert(client.number, Arc::clone(&client));
        }
        client
    }

    pub(super) fn leave(&self, client: &Client) {
        self.here.remove(&client.number);
    }

    /// In the order in which they came.
    pub fn list(&self) -> Vec<Arc<Client>> {
        let mut list: Vec<_> = self.here.iter().map(|it| Arc::clone(&it)).collect();
        list.sort_by_key(|client| client.number);
        list
    }
}
