//! Computes vectors for the tools that have none.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use encoder::Encoder;
use tool::ServerName;

use crate::embedding::stored_vectors::StoredVectors;
use crate::embedding::vector::Vector;
use crate::embedding::vectors::Embeddings;
use crate::embedding::views::{self, TextKey, key, request_key, server_key};
use crate::limits::{EMBEDDINGS_A_WRITE, EMBEDDINGS_AT_ONCE, PIECES_ENCODED, WRITES_MAX};
use crate::loaded_tools::KnownServer;
use crate::{Entry, RegistryError};

pub(crate) struct Work<'a> {
    used: HashSet<TextKey>,
    todo: Vec<UnembeddedText<'a>>,
    threads: usize,
    go_on: &'a (dyn Fn(usize, usize) -> bool + Sync),
    done: AtomicUsize,
    is_over: AtomicBool,
}

/// A text that has no vector.
#[derive(Debug, Clone, Copy)]
enum UnembeddedText<'a> {
    Tool(&'a Entry),
    Server(&'a ServerName, &'a str),
    Request(&'a str),
}

impl UnembeddedText<'_> {
    fn text(&self) -> String {
        match self {
            Self::Tool(entry) => views::text(entry),
            Self::Server(name, about) => views::server_text(name, about),
            Self::Request(text) => (*text).to_owned(),
        }
    }

    fn key(&self) -> TextKey {
        match self {
            Self::Tool(entry) => key(entry),
            Self::Server(name, about) => server_key(name, about),
            Self::Request(text) => request_key(text),
        }
    }
}

impl<'a> Work<'a> {
    /// Collects the visible tools, their requests and the servers that have no vector in `made`.
    pub(crate) fn new(
        visible: &'a [Arc<Entry>],
        servers: &'a [Arc<KnownServer>],
        made: &Embeddings,
        threads: usize,
        go_on: &'a (dyn Fn(usize, usize) -> bool + Sync),
    ) -> Self {
        let about = |server: &'a Arc<KnownServer>| {
            let about = server.about.as_deref()?;
            Some(UnembeddedText::Server(&server.name, about))
        };
        let about: Vec<UnembeddedText> = servers.iter().filter_map(about).collect();
        let requests = visible.iter().flat_map(|entry| &entry.requests);
        let requests = requests.map(|text| UnembeddedText::Request(text));
        let keys = visible.iter().map(|entry| key(entry));
        let keys = keys.chain(about.iter().map(UnembeddedText::key));
        let used = keys.chain(requests.clone().map(|it| it.key())).collect();
        let tools = visible.iter().enumerate();
        let tools = tools.filter(|(place, _)| !made.has(*place));
        let tools = tools.map(|(_, entry)| UnembeddedText::Tool(entry));
        let about = about.into_iter().filter(|it| made.lacks(&it.key()));
        let mut seen = HashSet::new();
        let requests = requests.filter(|it| made.lacks_request(&it.key()) && seen.insert(it.key()));
        Self {
            used,
            todo: about.chain(tools).chain(requests).collect(),
            threads: threads.max(1),
            go_on,
            done: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
        }
    }

    pub(crate) fn is_used(&self, key: &TextKey) -> bool {
        self.used.contains(key)
    }

    /// Passes the computed vectors to `write`, one batch at a time.
    pub(crate) fn run(
        &self,
        encoder: &Encoder,
        write: impl Fn(StoredVectors) -> Result<(), RegistryError>,
    ) -> Result<usize, RegistryError> {
        let mut made = 0;
        // Each write replaces the whole file.
        let a_write = EMBEDDINGS_A_WRITE.max(self.todo.len().div_ceil(WRITES_MAX));
        for batch in self.todo.chunks(a_write) {
            let kept = self.batch(encoder, batch);
            made += kept.len();
            if kept.len() > 0 {
                write(kept)?;
            }
            if self.is_over.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(made)
    }

    fn batch(&self, encoder: &Encoder, batch: &[UnembeddedText]) -> StoredVectors {
        let share = batch.len().div_ceil(self.threads);
        let shares = batch.chunks(share.max(1));
        std::thread::scope(|scope| {
            let threads = shares.map(|share| scope.spawn(move || self.share(encoder, share)));
            let threads: Vec<_> = threads.collect();
            let mut all = StoredVectors::default();
            for thread in threads {
                all.join(thread.join().expect("encoding does not panic"));
            }
            all
        })
    }

    fn share(&self, encoder: &Encoder, texts: &[UnembeddedText]) -> StoredVectors {
        let mut made = StoredVectors::default();
        for chunk in texts.chunks(EMBEDDINGS_AT_ONCE) {
            if self.is_over.load(Ordering::Relaxed) {
                break;
            }
            let said: Vec<String> = chunk.iter().map(UnembeddedText::text).collect();
            match encoder.encode_all(&said, PIECES_ENCODED) {
                Ok(vectors) => {
                    for (text, numbers) in chunk.iter().zip(vectors) {
                        made.insert(text.key(), Vector::of(&numbers));
                    }
                }
                Err(error) => tracing::warn!(%error, "some tools have no embedding"),
            }
            let done = self.done.fetch_add(chunk.len(), Ordering::Relaxed) + chunk.len();
            if !(self.go_on)(done, self.todo.len()) {
                self.is_over.store(true, Ordering::Relaxed);
            }
        }
        made
    }
}
