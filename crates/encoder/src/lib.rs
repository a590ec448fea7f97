//! Vectors of texts: those of texts that mean alike point alike, whatever their words.
//!
//! The model (all-MiniLM-L6-v2, taught which tool serves a request; `registry/encoder/README.md` says
//! where it comes from, how it was taught and made small) is part of the program: nothing is downloaded, nothing is asked for. This
//! room knows no tools and no queries.
#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod pieces;
mod words;

use std::sync::Arc;

use rten::{Model, ModelOptions, NodeId, RunOptions, ThreadPool};
use rten_tensor::{NdTensor, Tensor, prelude::*};

use crate::pieces::Pieces;
use crate::words::{PLACES, Words};

pub use crate::words::DIMENSIONS;

/// Names the model and how it was made small; vectors of another one do not compare.
pub const MODEL: &str = "all-MiniLM-L6-v2/tools 1/i7";

/// Bytes of a text that are looked at; what fits the model's 256 words is far less.
const TEXT_BYTES_MAX: usize = 4_096;

/// A model that cannot be used; only a broken build has one.
#[derive(Debug, thiserror::Error)]
pub enum EncoderError {
    /// The network cannot be read or run.
    #[error("the encoder's model: {0}")]
    Model(String),
    /// The table of word pieces cannot be read.
    #[error("the encoder's {0} is not what it should be")]
    Words(&'static str),
}

/// The loaded model: about 45 MB, made in about 60 ms. One serves every thread.
pub struct Encoder {
    pieces: Pieces,
    words: Words,
    layers: Model,
    rows: NodeId,
    vector: NodeId,
    /// One thread a text: several texts at once use more.
    pool: Arc<ThreadPool>,
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encoder")
            .field("model", &MODEL)
            .finish_non_exhaustive()
    }
}

impl Encoder {
    /// The encoder, read from the program itself: some 60 ms.
    pub fn load() -> Result<Self, EncoderError> {
        let model = |error: &dyn std::fmt::Display| EncoderError::Model(error.to_string());
        let mut options = ModelOptions::with_all_ops();
        options.prepack_weights(true);
        let layers = options
            .load_static_slice(LAYERS)
            .map_err(|error| model(&error))?;
        Ok(Self {
            pieces: Pieces::of(VOCABULARY).ok_or(EncoderError::Words("vocab.txt"))?,
            words: Words::of(WORDS).ok_or(EncoderError::Words("words.bin"))?,
            rows: layers.node_id("rows").map_err(|error| model(&error))?,
            vector: layers.node_id("vector").map_err(|error| model(&error))?,
            layers,
            pool: Arc::new(ThreadPool::with_num_threads(1)),
        })
    }

    /// The vector of a text's beginning (some 250 words), of length one. Takes about two
    /// milliseconds for a request and ten for a paragraph.
    pub fn encode(&self, text: &str) -> Result<Vec<f32>, EncoderError> {
        self.encode_first(text, PLACES)
    }

    /// The vector of a text's first pieces of words, 256 at most, of length one. The time it takes
    /// grows with them.
    pub fn encode_first(&self, text: &str, pieces: usize) -> Result<Vec<f32>, EncoderError> {
        let text = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
        let ids = self.pieces.ids(text, pieces.min(PLACES));
        let rows = NdTensor::from_data([ids.len(), DIMENSIONS], self.words.rows(&ids));
        let options = RunOptions::default().with_thread_pool(Some(Arc::clone(&self.pool)));
        let failed = |error: String| EncoderError::Model(error);
        let outputs = self
            .layers
            .run(
                vec![(self.rows, rows.view().into())],
                &[self.vector],
                Some(options),
            )
            .map_err(|error| failed(error.to_string()))?;
        let output = outputs.into_iter().next();
        let vector: Tensor<f32> = output
            .and_then(|value| value.try_into().ok())
            .ok_or_else(|| failed("it gave no vector".to_owned()))?;
        Ok(of_length_one(vector.to_vec()))
    }
}

/// A vector that points the same way; nothing stays nothing.
pub fn of_length_one(mut vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|it| it * it).sum::<f32>().sqrt();
    if length > 0.0 {
        for it in &mut vector {
            *it /= length;
        }
    }
    vector
}

static LAYERS: &[u8] = include_bytes!("../../../registry/encoder/layers.onnx");
static WORDS: &[u8] = include_bytes!("../../../registry/encoder/words.bin");
static VOCABULARY: &str = include_str!("../../../registry/encoder/vocab.txt");

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;

    use super::*;

    fn encoder() -> &'static Encoder {
        static ENCODER: OnceLock<Encoder> = OnceLock::new();
        ENCODER.get_or_init(|| Encoder::load().unwrap())
    }

    fn alike(a: &str, b: &str) -> f32 {
        let (a, b) = (encoder().encode(a).unwrap(), encoder().encode(b).unwrap());
        a.iter().zip(&b).map(|(a, b)| a * b).sum()
    }

    /// The first numbers that the model in full precision (torch, f32) gives; ours keeps
    /// 7 bits a weight.
    #[test]
    fn vectors_are_those_of_the_model() {
        let vector = encoder()
            .encode("Tell me which files are modified")
            .unwrap();
        assert_eq!(vector.len(), DIMENSIONS);
        let length: f32 = vector.iter().map(|it| it * it).sum();
        assert!((length - 1.0).abs() < 1e-4, "{length}");
        let whole = [0.0170, 0.0540, 0.0031, 0.0026];
        for (ours, theirs) in vector.iter().zip(whole) {
            assert!((ours - theirs).abs() < 0.03, "{ours} {theirs}");
        }
    }

    #[test]
    fn what_means_alike_points_alike_without_a_word_in_common() {
        let near = alike(
            "which files were modified",
            "show the status of the working tree",
        );
        let far = alike("which files were modified", "play the next song");
        assert!(near > far + 0.1, "{near} {far}");
    }

    #[test]
    fn any_text_has_a_vector() {
        let long = "word ".repeat(10_000);
        for text in [
            "",
            " ",
            "\0\u{7}",
            "🦀🦀",
            "东京的天气",
            "مرحبا",
            &long,
            &"x".repeat(10_000),
        ] {
            let vector = encoder().encode(text).unwrap();
            assert!(vector.iter().all(|it| it.is_finite()), "{text:.20}");
        }
    }

    #[test]
    fn one_text_has_one_vector_whoever_asks() {
        let texts = ["list files", "send an email to the team", "list files"];
        let alone = encoder().encode(texts[0]).unwrap();
        let together: Vec<Vec<f32>> = std::thread::scope(|scope| {
            let threads = texts.map(|text| scope.spawn(move || encoder().encode(text).unwrap()));
            threads.map(|thread| thread.join().unwrap()).into()
        });
        assert_eq!(alone, together[0]);
        assert_eq!(alone, together[2]);
    }
}
