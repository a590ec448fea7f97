//! Embeddings of tools beside the index: made once for each text, kept in one file.
//!
//! The file is derived like the index: a text is known by its digest, so a tool that changed has
//! no vector until it is given one, and a damaged file reads as an empty one.

mod kept;
mod vector;
mod vectors;
mod views;
mod work;

use std::sync::Arc;
use std::time::{Duration, Instant};

use encoder::Encoder;
use parking_lot::Mutex;

pub(crate) use kept::{FILE, Kept};
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
    /// `None` where it is broken.
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

    /// `None` where it is off, or broken: then the log says so once, and words alone decide. Whoever
    /// comes first waits some 10 ms, and so do those who come meanwhile.
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

/// Lets the encoder go where nobody used it for so long; it is loaded again when it is needed. Answers
/// whether it was there and is gone.
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
