//! Embeddings of tools, in addition to the index: computed once for each text, stored in one file.
//!
//! The file is derived like the index: a text is identified by its digest, so a changed tool has no
//! vector until one is computed, and a damaged file reads as an empty one.

mod stored_vectors;
mod vector;
mod vectors;
mod views;
mod work;

use std::sync::Arc;
use std::time::{Duration, Instant};

use encoder::Encoder;
use parking_lot::Mutex;

pub(crate) use stored_vectors::{FILE, StoredVectors};
pub(crate) use vector::Vector;
pub(crate) use vectors::{Embeddings, Similar};
pub(crate) use work::Work;

/// The encoder, loaded when it is first needed; `off` is how a configuration wants it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LazyEncoder {
    is_on: bool,
}

/// One serves every registry of a process.
static LOADED: Mutex<Option<Loaded>> = Mutex::new(None);

struct Loaded {
    /// `None` if it is broken.
    encoder: Option<Arc<Encoder>>,
    used: Instant,
}

impl LazyEncoder {
    pub(crate) fn new(is_on: bool) -> Self {
        Self { is_on }
    }

    pub(crate) fn is_on(self) -> bool {
        self.is_on
    }

    /// Returns the encoder. `None` if it is off or broken: the latter is logged once, and words alone
    /// decide. The first caller waits some 10 ms, and so do callers during that time.
    pub(crate) fn get(self) -> Option<Arc<Encoder>> {
        if !self.is_on {
            return None;
        }
        let mut held = LOADED.lock();
        let loaded = held.get_or_insert_with(|| Loaded {
            encoder: Encoder::load()
                .inspect_err(|error| tracing::warn!(%error, "searching by words alone"))
                .ok()
                .map(Arc::new),
            used: Instant::now(),
        });
        loaded.used = Instant::now();
        loaded.encoder.clone()
    }
}

/// Unloads the encoder if it was idle for this time; it is loaded again when it is needed. Returns
/// true if it was unloaded.
pub fn let_encoder_go(idle: Duration) -> bool {
    let mut held = LOADED.lock();
    let is_idle = held
        .as_ref()
        .is_some_and(|it| it.encoder.is_some() && it.used.elapsed() >= idle);
    if is_idle {
        *held = None;
    }
    is_idle
}
