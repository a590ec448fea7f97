//! The vectors of one generation's tools, side by side.

use std::sync::Arc;

use crate::Entry;
use crate::embedding::kept::Kept;
use crate::embedding::vector::Vector;
use crate::embedding::views::key;

/// The vectors of one generation's visible tools, in their order.
#[derive(Debug, Default)]
pub(crate) struct Embeddings {
    vectors: Vec<Option<Vector>>,
    known: usize,
}

impl Embeddings {
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

    /// The likeness of each tool and a request, -1 to 1. A tool without a vector is as alike as the
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
