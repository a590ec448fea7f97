//! Embeddings of tools beside the index: made once for each text, kept in one file.
//!
//! The file is derived like the index: a text is known by its digest, so a tool that changed has
//! no vector until it is given one, and a damaged file reads as an empty one.

mod kept;
mod vector;
mod vectors;
mod views;
mod work;

use std::sync::OnceLock;

use encoder::Encoder;

pub(crate) use kept::{FILE, Kept};
pub(crate) use vector::Vector;
pub(crate) use vectors::Embeddings;
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
                .inspect_err(|error| tracing::warn!(%error, "searching by words alone"))
                .ok()
        };
        self.is_on
            .then(|| LOADED.get_or_init(load).as_ref())
            .flatten()
    }
}
