//! Encodes texts as vectors: texts of similar meaning have vectors of similar direction, even with
//! different words.
//!
//! The model (all-MiniLM-L6-v2, trained to match requests with tools; see `registry/encoder/README.md`
//! for its origin, training and quantization) is embedded in the program, and nothing is downloaded. This
//! crate uses no tools and no queries.
#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod layers;
mod packed;
mod pieces;
mod rows;
mod words;

use std::fmt::Display;

use rayon::{ThreadPool, ThreadPoolBuilder};
use rten_simd::SimdOp as _;

use crate::layers::{Layers, Room};
use crate::pieces::Pieces;
use crate::rows::Products;
use crate::words::{PLACES, Words};

pub use crate::words::DIMENSIONS;

/// The name of the model and its quantization. Vectors of different models are not comparable.
pub const MODEL: &str = "all-MiniLM-L6-v2/tools 3/i5 groups";

/// The maximum number of bytes of a text that are read; the model's 256 words are far fewer.
const TEXT_BYTES_MAX: usize = 4_096;

/// The rows of a batch: the values between two products fit into a core's cache.
const ROWS_A_BATCH: usize = 128;

/// The embedded model cannot be used, which only happens in a broken build.
#[derive(Debug, thiserror::Error)]
#[error("the encoder's {0}")]
pub struct EncoderError(String);

impl EncoderError {
    fn of_model(error: impl Display) -> Self {
        Self(format!("model: {error}"))
    }

    fn of_file(name: &str) -> Self {
        Self(format!("{name} is invalid"))
    }
}

/// The loaded model, which all threads share.
pub struct Encoder {
    pieces: Pieces,
    words: Words,
    layers: Layers,
    /// A pool of one thread: a request is too short to be divided.
    thread: ThreadPool,
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encoder")
            .field("model", &MODEL)
            .finish_non_exhaustive()
    }
}

impl Encoder {
    /// Loads the encoder from the program itself.
    pub fn load() -> Result<Self, EncoderError> {
        let (pieces, layers) = std::thread::scope(|scope| {
            let pieces = scope.spawn(|| Pieces::of(VOCABULARY));
            let layers = Layers::of(LAYERS);
            (pieces.join().expect("reading does not panic"), layers)
        });
        let pieces = pieces.ok_or_else(|| EncoderError::of_file("vocab.txt"))?;
        Ok(Self {
            words: Words::of(WORDS, pieces.count())
                .ok_or_else(|| EncoderError::of_file("words.bin"))?,
            pieces,
            layers: layers.ok_or_else(|| EncoderError::of_file("layers.bin"))?,
            thread: one_thread()?,
        })
    }

    /// Encodes the beginning of a text (about 250 words) as a vector of length one. Takes one to two
    /// milliseconds for a request.
    pub fn encode(&self, text: &str) -> Result<Vec<f32>, EncoderError> {
        let ids = [self.ids(text, PLACES)];
        let encode = || self.batch(&ids, &mut Room::default());
        let vector = self.thread.install(encode)?.pop();
        vector.ok_or_else(|| EncoderError::of_model("it gave no vector"))
    }

    /// Encodes the first word pieces of each text, 256 at most, as vectors of length one: the same as
    /// [`Encoder::encode`], but faster. Uses one core; the time is proportional to the pieces.
    pub fn encode_all(
        &self,
        texts: &[String],
        pieces: usize,
    ) -> Result<Vec<Vec<f32>>, EncoderError> {
        let ids: Vec<Vec<u32>> = texts.iter().map(|text| self.ids(text, pieces)).collect();
        one_thread()?.install(|| {
            let mut vectors = Vec::with_capacity(ids.len());
            let mut room = Room::default();
            let mut rest = ids.as_slice();
            while !rest.is_empty() {
                let mut rows = 0;
                let fits = rest.iter().take_while(|ids| {
                    rows += ids.len();
                    rows <= ROWS_A_BATCH
                });
                let (batch, behind) = rest.split_at(fits.count().max(1));
                vectors.extend(self.batch(batch, &mut room)?);
                rest = behind;
            }
            Ok(vectors)
        })
    }

    fn ids(&self, text: &str, pieces: usize) -> Vec<u32> {
        let text = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
        self.pieces.ids(text, pieces.min(PLACES))
    }

    fn batch(&self, texts: &[Vec<u32>], room: &mut Room) -> Result<Vec<Vec<f32>>, EncoderError> {
        let mut rows = Vec::with_capacity(ROWS_A_BATCH * DIMENSIONS);
        for ids in texts {
            self.words.add_rows(ids, &mut rows);
        }
        let lengths: Vec<usize> = texts.iter().map(Vec::len).collect();
        let vectors = self.layers.vectors(&mut rows, &lengths, room);
        let vectors = vectors.map_err(EncoderError::of_model)?;
        Ok(vectors.into_iter().map(of_length_one).collect())
    }
}

/// Makes a pool of one thread, in which products are not divided among threads.
fn one_thread() -> Result<ThreadPool, EncoderError> {
    let pool = ThreadPoolBuilder::new()
        .num_threads(1)
        .thread_name(|_| "encoder".to_owned());
    pool.build().map_err(EncoderError::of_model)
}

/// Multiplies each row with another one, by the widest vector instructions of this processor: about 20 ns
/// per row.
pub fn products(rows: &[[i8; DIMENSIONS]], with: &[i8; DIMENSIONS]) -> Vec<i32> {
    Products { rows, with }.dispatch()
}

/// Scales a vector to length one; a zero vector is unchanged.
pub fn of_length_one(mut vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|it| it * it).sum::<f32>().sqrt();
    if length > 0.0 {
        for it in &mut vector {
            *it /= length;
        }
    }
    vector
}

static LAYERS: &[u8] = include_bytes!("../../../registry/encoder/layers.bin");
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
    /// 5 bits a weight.
    #[test]
    fn vectors_are_those_of_the_model() {
        let vector = encoder()
            .encode("Tell me which files are modified")
            .unwrap();
        assert_eq!(vector.len(), DIMENSIONS);
        let length: f32 = vector.iter().map(|it| it * it).sum();
        assert!((length - 1.0).abs() < 1e-4, "{length}");
        let whole = [0.0180, 0.0614, -0.0284, -0.0321];
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
    fn a_text_has_the_same_vector_in_any_batch() {
        let sentence = "the quick brown fox jumps over the lazy dog ";
        let texts: Vec<String> = (0..40)
            .map(|at| format!("{at} {}", sentence.repeat(at % 9)))
            .collect();
        let together = encoder().encode_all(&texts, PLACES).unwrap();
        for (text, vector) in texts.iter().zip(together) {
            assert_eq!(encoder().encode(text).unwrap(), vector, "{text}");
        }
        assert!(encoder().encode_all(&[], PLACES).unwrap().is_empty());
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
