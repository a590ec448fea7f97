//! The network: its input is rows of words, its output one vector per text.
//!
//! Products with weights multiply 8-bit by 7-bit numbers, for the rows of all texts of a batch at once
//! (the file has 5 bits, which become 7 as they are packed for this processor);
//! only attention is computed for each text separately. Each row is rounded with its own scale, so the
//! vector of a text does not depend on the other texts of its batch.

use rten_gemm::{GemmError, GemmExecutor, GemmInputA, GemmInputB, GemmOptions, PackedBMatrix};
use rten_simd::{SimdOp as _, SimdUnaryOp as _};
use rten_tensor::{Matrix, NdTensorView};
use rten_vecmath::{Gelu, Softmax};

use crate::packed::{Packed, number};
use crate::rows::{self, Add, Restore, Round};
use crate::words::DIMENSIONS;

const LAYERS: usize = 6;
const HEADS: usize = 12;
/// The numbers of a row for one head.
const HEAD: usize = DIMENSIONS / HEADS;
/// Query, key and value side by side.
const ATTENTION: usize = 3 * DIMENSIONS;
/// The numbers of a row between the two products after the attention.
const WIDE: usize = 4 * DIMENSIONS;

/// The outputs and inputs of a layer's four matrices, in the order of the file.
const SHAPES: [[usize; 2]; 4] = [
    [ATTENTION, DIMENSIONS],
    [DIMENSIONS, DIMENSIONS],
    [WIDE, DIMENSIONS],
    [DIMENSIONS, WIDE],
];

/// The numbers of a layer's matrices.
const MATRICES: usize = (ATTENTION + DIMENSIONS + 2 * WIDE) * DIMENSIONS;
/// The gain and shift of a norm.
const DIMENSIONS_OF_NORM: usize = 2 * DIMENSIONS;
/// The other numbers of a layer: a scale and a bias for each output, and two norms.
const NUMBERS: usize = 2 * (ATTENTION + DIMENSIONS + WIDE + DIMENSIONS) + 2 * DIMENSIONS_OF_NORM;

/// The weights, packed for this processor: 11 MB.
pub(crate) struct Layers {
    first: Norm,
    layers: Vec<Layer>,
}

/// Multiplies rounded numbers.
type Small = GemmExecutor<u8, i8, i32>;

struct Layer {
    attention: Product,
    output: Product,
    behind_attention: Norm,
    up: Product,
    down: Product,
    behind: Norm,
}

struct Norm {
    gain: Vec<f32>,
    shift: Vec<f32>,
}

/// A matrix of rounded numbers, and the values that convert its sums to numbers.
struct Product {
    matrix: PackedBMatrix<i8>,
    /// The sum of each output's weights: the factor by which a row's zero changes its sums.
    weights: Vec<i32>,
    scales: Vec<f32>,
    biases: Vec<f32>,
}

impl Layers {
    /// Reads the file written by `registry/encoder/make.py`; `None` if it has another size. Packing takes
    /// time, so half of it runs on another core.
    pub(crate) fn of(bytes: &'static [u8]) -> Option<Self> {
        let mut file = WeightsReader::of(bytes)?;
        let first = file.norm()?;
        let mut second_half = file.skip(LAYERS / 2)?;
        let (mut layers, more) = std::thread::scope(|scope| {
            let other = scope.spawn(move || second_half.layers(LAYERS - LAYERS / 2));
            let layers = file.layers(LAYERS / 2);
            (layers, other.join().expect("reading does not panic"))
        });
        layers.as_mut()?.extend(more?);
        Some(Self {
            first,
            layers: layers?,
        })
    }

    /// Returns the mean of each text's rows after the last layer. `rows` has the rows of all texts,
    /// `lengths` the number of rows of each text.
    pub(crate) fn vectors(
        &self,
        rows: &mut [f32],
        lengths: &[usize],
        room: &mut Room,
    ) -> Result<Vec<Vec<f32>>, GemmError> {
        self.first.apply(rows);
        for layer in &self.layers {
            layer
                .attention
                .times(rows, &mut room.product, &mut room.wide)?;
            attend(lengths, room)?;
            layer
                .output
                .times(&room.seen, &mut room.product, &mut room.narrow)?;
            Add(rows, &room.narrow).dispatch();
            layer.behind_attention.apply(rows);
            layer.up.times(rows, &mut room.product, &mut room.wide)?;
            Gelu {}.map_mut(&mut room.wide);
            layer
                .down
                .times(&room.wide, &mut room.product, &mut room.narrow)?;
            Add(rows, &room.narrow).dispatch();
            layer.behind.apply(rows);
        }
        let mut rest = &*rows;
        let means = lengths.iter().map(|length| {
            let (text, behind) = rest.split_at(length * DIMENSIONS);
            rest = behind;
            mean(text)
        });
        Ok(means.collect())
    }
}

/// Buffers for the values between two steps. They are reused: allocating them for each step takes a
/// third more time.
#[derive(Default)]
pub(crate) struct Room {
    whole: GemmExecutor,
    product: ProductRoom,
    wide: Vec<f32>,
    narrow: Vec<f32>,
    seen: Vec<f32>,
    shares: Vec<f32>,
    found: Vec<f32>,
}

#[derive(Default)]
struct ProductRoom {
    kernel: Small,
    rounded: Vec<rows::Rounding>,
    small: Vec<u8>,
    sums: Vec<i32>,
}

impl Product {
    fn times(
        &self,
        rows: &[f32],
        room: &mut ProductRoom,
        numbers: &mut Vec<f32>,
    ) -> Result<(), GemmError> {
        let (out, into) = (self.scales.len(), self.matrix.rows());
        let count = rows.len() / into;
        room.small.resize(rows.len(), 0);
        room.sums.resize(count * out, 0);
        numbers.resize(count * out, 0.0);
        let small = room.small.chunks_exact_mut(into);
        let rounded = rows.chunks_exact(into).zip(small);
        room.rounded.clear();
        let rounded = rounded.map(|(row, small)| Round { row, small }.dispatch());
        room.rounded.extend(rounded);
        let a = GemmInputA::Unpacked(NdTensorView::from_data([count, into], &room.small[..]));
        let b = GemmInputB::Packed(&self.matrix);
        room.kernel
            .gemm(&mut room.sums, a, b, GemmOptions::default())?;
        let sums = room.sums.chunks_exact(out).zip(&room.rounded);
        for (row, (sums, rounded)) in numbers.chunks_exact_mut(out).zip(sums) {
            Restore {
                sums,
                by: *rounded,
                weights: &self.weights,
                scales: &self.scales,
                biases: &self.biases,
                row,
            }
            .dispatch();
        }
        Ok(())
    }
}

/// Computes the attention of each row over the rows of its text: from `wide` to `seen`.
fn attend(lengths: &[usize], room: &mut Room) -> Result<(), GemmError> {
    let mut attention = room.wide.as_slice();
    room.seen.resize(attention.len() / 3, 0.0);
    let mut seen = room.seen.as_mut_slice();
    for &length in lengths {
        let (text, behind) = attention.split_at(length * ATTENTION);
        let (seen_here, seen_behind) = seen.split_at_mut(length * DIMENSIONS);
        room.shares.resize(length * length, 0.0);
        room.found.resize(length * HEAD, 0.0);
        for head in 0..HEADS {
            look(&room.whole, text, head, &mut room.shares, &mut room.found)?;
            let places = seen_here.chunks_exact_mut(DIMENSIONS);
            for (place, found) in places.zip(room.found.chunks_exact(HEAD)) {
                place[head * HEAD..][..HEAD].copy_from_slice(found);
            }
        }
        (attention, seen) = (behind, seen_behind);
    }
    Ok(())
}

/// Computes the attention of one head over a text.
fn look(
    whole: &GemmExecutor,
    text: &[f32],
    head: usize,
    shares: &mut [f32],
    found: &mut [f32],
) -> Result<(), GemmError> {
    let length = text.len() / ATTENTION;
    let part = |part: usize| &text[part * DIMENSIONS + head * HEAD..];
    let query = matrix([length, HEAD], part(0), [ATTENTION, 1]);
    let key = matrix([HEAD, length], part(1), [1, ATTENTION]);
    let value = matrix([length, HEAD], part(2), [ATTENTION, 1]);
    multiply(whole, shares, query, key)?;
    for row in shares.chunks_exact_mut(length) {
        Softmax::new_mut(row).dispatch();
    }
    multiply(
        whole,
        found,
        matrix([length, length], shares, [length, 1]),
        value,
    )
}

fn multiply(whole: &GemmExecutor, out: &mut [f32], a: Matrix, b: Matrix) -> Result<(), GemmError> {
    let (a, b) = (GemmInputA::Unpacked(a), GemmInputB::Unpacked(b));
    whole.gemm(out, a, b, GemmOptions::default())
}

impl Norm {
    fn apply(&self, rows: &mut [f32]) {
        for row in rows.chunks_exact_mut(DIMENSIONS) {
            rows::normalize(row, &self.gain, &self.shift);
        }
    }
}

/// The part of the file that is not read yet.
struct WeightsReader {
    matrices: Packed,
    numbers: &'static [u8],
    /// The weights of one matrix.
    integers: Vec<i8>,
}

impl WeightsReader {
    fn of(bytes: &'static [u8]) -> Option<Self> {
        let (matrices, numbers) = Packed::read(bytes, LAYERS * MATRICES)?;
        let fits = numbers.len() == (DIMENSIONS_OF_NORM + LAYERS * NUMBERS) * size_of::<f32>();
        fits.then_some(Self {
            matrices,
            numbers,
            integers: Vec::new(),
        })
    }

    /// Returns the part of the file after this many layers.
    fn skip(&self, layers: usize) -> Option<Self> {
        Some(Self {
            matrices: self.matrices.split_at(layers * MATRICES)?.1,
            numbers: self.numbers.get(layers * NUMBERS * size_of::<f32>()..)?,
            integers: Vec::new(),
        })
    }

    fn layers(&mut self, count: usize) -> Option<Vec<Layer>> {
        let packer = GemmExecutor::new();
        (0..count).map(|_| self.layer(&packer)).collect()
    }

    fn layer(&mut self, packer: &Small) -> Option<Layer> {
        let [attention, output, up, down] = SHAPES;
        Some(Layer {
            attention: self.product(packer, attention)?,
            output: self.product(packer, output)?,
            behind_attention: self.norm()?,
            up: self.product(packer, up)?,
            down: self.product(packer, down)?,
            behind: self.norm()?,
        })
    }

    fn product(&mut self, packer: &Small, [out, into]: [usize; 2]) -> Option<Product> {
        let (small, behind) = self.matrices.split_at(out * into)?;
        self.matrices = behind;
        small.to_integers(&mut self.integers);
        let by_column = matrix([into, out], &self.integers, [1, into]);
        Some(Product {
            matrix: packer.prepack_b(by_column),
            weights: self.integers.chunks_exact(into).map(sum).collect(),
            scales: self.numbers(out)?,
            biases: self.numbers(out)?,
        })
    }

    fn norm(&mut self) -> Option<Norm> {
        Some(Norm {
            gain: self.numbers(DIMENSIONS)?,
            shift: self.numbers(DIMENSIONS)?,
        })
    }

    fn numbers(&mut self, count: usize) -> Option<Vec<f32>> {
        let (numbers, behind) = self.numbers.split_at_checked(count * size_of::<f32>())?;
        self.numbers = behind;
        let numbers = numbers.chunks_exact(size_of::<f32>());
        Some(numbers.map(number).collect())
    }
}

fn matrix<T>(shape: [usize; 2], numbers: &[T], strides: [usize; 2]) -> Matrix<'_, T> {
    NdTensorView::from_slice_with_strides(shape, numbers, strides)
        .expect("the numbers reach as far as the shape")
}

fn sum(weights: &[i8]) -> i32 {
    weights.iter().copied().map(i32::from).sum()
}

fn mean(rows: &[f32]) -> Vec<f32> {
    let mut sum = vec![0.0; DIMENSIONS];
    for row in rows.chunks_exact(DIMENSIONS) {
        Add(&mut sum, row).dispatch();
    }
    let count = rows::count(rows.len() / DIMENSIONS);
    for number in &mut sum {
        *number /= count;
    }
    sum
}
