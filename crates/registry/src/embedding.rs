//! Embeddings of tools, in addition to the index: computed once per text, and stored in one file.
//!
//! The file can always be recomputed, like the index. A text is identified by its digest, so a
//! changed tool has no vector until a new one is computed. A damaged file reads as empty.

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
pub(crate) use vectors::{Embeddings, REQUEST_DISTANCE, Similar};
pub(crate) use work::Work;

/// A handle to the encoder, which is loaded on first use. The configuration can turn it off.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LazyEncoder {
    is_on: bool,
}

/// The encoder that all registries of a process share.
static LOADED: Mutex<Option<Loaded>> = Mutex::new(None);

struct Loaded {
    /// `None` if the encoder could not be loaded.
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

    /// Returns the encoder, or `None` if it is off or cannot be loaded. A load failure is logged
    /// once, and the search then uses words alone. The first call takes about 10 ms, and concurrent
    /// calls wait for it.
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

/// Unloads the encoder if it was idle for this time; the next use loads it again. Returns true if
/// it was unloaded.
pub fn let_encoder_go(idle: Duration) -> bool {
    let mut held = LOADED.lock();
    let is_idle = |it: &mut Loaded| it.encoder.is_some() && it.used.elapsed() >= idle;
    held.take_if(is_idle).is_some()
}
