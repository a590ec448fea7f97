//! What tools mean, as vectors beside the index: made once for each text, kept in one file.
//!
//! The file is derived like the index: a text is known by its digest, so a tool that changed has
//! no vector until it is given one, and a damaged file reads as an empty one.

mod kept;
mod vector;
mod views;
mod work;

use std::sync::{Arc, OnceLock};

use encoder::Encoder;

use crate::Entry;
pub(crate) use kept::{FILE, Kept};
pub(crate) use vector::Vector;
use views::key;
pub(crate) use work::Work;

/// The encoder, loaded when it is first needed; `off` is how a configuration wants it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LazyEncoder {
    is_on: bool,
}

/// One serves every registry of a process.
static LOADED: OnceLock<Option<Encoder>> = OnceLock::new();

impl LazyEncoder {
    pub(crate) fn new(is_on: bool) -> Self {
        Self { is_on }
    }

    pub(crate) fn is_on(self) -> bool {
        self.is_on
    }

    /// `None` where it is off, or broken: then the log says so once, and words alone decide.
    pub(crate) fn get(self) -> Option<&'static Encoder> {
        let load = || {
            Encoder::load()
                .inspect_err(|error| tracing::warn!(%error, "searching without meaning"))
                .ok()
        };
        self.is_on
            .then(|| LOADED.get_or_init(load).as_ref())
            .flatten()
    }
}

/// The vectors of one generation's visible tools, in their order.
#[derive(Debug, Default)]
pub(crate) struct Meanings {
    vectors: Vec<Option<Vector>>,
    known: usize,
}

impl Meanings {
    pub(crate) fn of(visible: &[Arc<Entry>], kept: &Kept) -> Self {
        let vectors = visible.iter().map(|entry| kept.get(key(entry)));
        let vectors: Vec<Option<Vector>> = vectors.collect();
        let known = vectors.iter().flatten().count();
        Self { vectors, known }
    }

    pub(crate) fn has(&self, place: usize) -> bool {
        self.vectors[place].is_some()
    }

    /// Tools that have no vector yet.
    pub(crate) fn missing(&self) -> usize {
        self.vectors.len() - self.known
    }

    /// Enough to judge by.
    pub(crate) fn is_known(&self) -> bool {
        self.known > 0 && self.known * 2 >= self.vectors.len()
    }

    /// How alike each tool and a request are, -1 to 1. A tool without a vector is as alike as the
    /// mean: its words decide. `None` while fewer than half of the tools have one.
    pub(crate) fn similar(&self, request: &Vector) -> Option<Vec<f32>> {
        if !self.is_known() {
            return None;
        }
        let found: Vec<Option<f32>> = self
            .vectors
            .iter()
            .map(|vector| vector.as_ref().map(|it| it.times(request)))
            .collect();
        let mean = found.iter().flatten().sum::<f32>() / count(self.known);
        Some(found.into_iter().map(|it| it.unwrap_or(mean)).collect())
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a catalogue is counted, not measured"
)]
fn count(tools: usize) -> f32 {
    tools as f32
}
