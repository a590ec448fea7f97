//! Vectors for the tools that have none.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use encoder::Encoder;

use crate::embedding::kept::Kept;
use crate::embedding::vector::Vector;
use crate::embedding::vectors::Embeddings;
use crate::embedding::views::{self, Key, key};
use crate::limits::{EMBEDDINGS_A_WRITE, PIECES_ENCODED};
use crate::{Entry, RegistryError};

pub(crate) struct Work<'a> {
    used: HashSet<Key>,
    todo: Vec<&'a Entry>,
    threads: usize,
    go_on: &'a (dyn Fn(usize, usize) -> bool + Sync),
    done: AtomicUsize,
    is_over: AtomicBool,
}

impl<'a> Work<'a> {
    /// For those of the visible tools that have no vector in `made`.
    pub(crate) fn new(
        visible: &'a [Arc<Entry>],
        made: &Embeddings,
        threads: usize,
        go_on: &'a (dyn Fn(usize, usize) -> bool + Sync),
    ) -> Self {
        let todo = visible.iter().enumerate();
        let todo = todo.filter(|(place, _)| !made.has(*place));
        Self {
            used: visible.iter().map(|entry| key(entry)).collect(),
            todo: todo.map(|(_, entry)| &**entry).collect(),
            threads: threads.max(1),
            go_on,
            done: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
        }
    }

    pub(crate) fn is_used(&self, key: &Key) -> bool {
        self.used.contains(key)
    }

    /// Hands what is made to `write`, a batch at a time.
    pub(crate) fn run(
        &self,
        encoder: &Encoder,
        write: impl Fn(Kept) -> Result<(), RegistryError>,
    ) -> Result<usize, RegistryError> {
        let mut made = 0;
        for batch in self.todo.chunks(EMBEDDINGS_A_WRITE) {
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

    fn batch(&self, encoder: &Encoder, batch: &[&Entry]) -> Kept {
        let share = batch.len().div_ceil(self.threads);
        let shares = batch.chunks(share.max(1));
        std::thread::scope(|scope| {
            let threads = shares.map(|share| scope.spawn(move || self.share(encoder, share)));
            let threads: Vec<_> = threads.collect();
            let mut all = Kept::default();
            for thread in threads {
                all.join(thread.join().expect("encoding does not panic"));
            }
            all
        })
    }

    fn share(&self, encoder: &Encoder, entries: &[&Entry]) -> Kept {
        let mut made = Kept::default();
        for entry in entries {
            if self.is_over.load(Ordering::Relaxed) {
                break;
            }
            match encoder.encode_first(&views::text(entry), PIECES_ENCODED) {
                Ok(numbers) => made.insert(key(entry), Vector::of(&numbers)),
                Err(error) => tracing::warn!(tool = %entry.at, %error, "it has no embedding"),
            }
            let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
            if !(self.go_on)(done, self.todo.len()) {
                self.is_over.store(true, Ordering::Relaxed);
            }
        }
        made
    }
}
