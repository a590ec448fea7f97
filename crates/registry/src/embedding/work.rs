//! Computes vectors for the tools that have none.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use encoder::Encoder;

use crate::embedding::stored_vectors::StoredVectors;
use crate::embedding::vector::Vector;
use crate::embedding::vectors::Embeddings;
use crate::embedding::views::{EncodedText, TextKey};
use crate::limits::{EMBEDDINGS_A_WRITE, EMBEDDINGS_AT_ONCE, PIECES_ENCODED, WRITES_MAX};
use crate::loaded_tools::KnownServer;
use crate::{Entry, RegistryError};

pub(crate) struct Work<'a> {
    pub(crate) used: HashSet<TextKey>,
    /// The texts that have no vector.
    todo: Vec<EncodedText<'a>>,
    threads: usize,
    go_on: &'a (dyn Fn(usize, usize) -> bool + Sync),
    done: AtomicUsize,
    is_over: AtomicBool,
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
            Some(EncodedText::Server(&server.name, about))
        };
        let about: Vec<EncodedText> = servers.iter().filter_map(about).collect();
        let requests = visible.iter().flat_map(|entry| &entry.requests);
        let requests = requests.map(|text| EncodedText::Request(text));
        let keys = visible.iter().map(|entry| EncodedText::Tool(entry).key());
        let keys = keys.chain(about.iter().map(|it| it.key()));
        let used = keys.chain(requests.clone().map(EncodedText::key)).collect();
        let tools = visible.iter().enumerate();
        let tools = tools.filter(|(place, _)| !made.has(*place));
        let tools = tools.map(|(_, entry)| EncodedText::Tool(entry));
        let about = about.into_iter().filter(|it| made.lacks(&it.key()));
        let mut seen = HashSet::new();
        let requests = requests.filter(|it| made.lacks(&it.key()) && seen.insert(it.key()));
        Self {
            used,
            todo: about.chain(tools).chain(requests).collect(),
            threads: threads.max(1),
            go_on,
            done: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
        }
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
            made += kept.0.len();
            if !kept.0.is_empty() {
                write(kept)?;
            }
            if self.is_over.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(made)
    }

    fn batch(&self, encoder: &Encoder, batch: &[EncodedText]) -> StoredVectors {
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

    fn share(&self, encoder: &Encoder, texts: &[EncodedText]) -> StoredVectors {
        let mut made = StoredVectors::default();
        for chunk in texts.chunks(EMBEDDINGS_AT_ONCE) {
            if self.is_over.load(Ordering::Relaxed) {
                break;
            }
            let said: Vec<String> = chunk.iter().map(|it| it.text()).collect();
            match encoder.encode_all(&said, PIECES_ENCODED) {
                Ok(vectors) => {
                    for (text, numbers) in chunk.iter().zip(vectors) {
                        made.0.insert(text.key(), Vector::of(&numbers));
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
