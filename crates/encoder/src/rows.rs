//! Operations on rows between two matrix products. `SimdOp` compiles each loop for the vector
//! instructions that the processor is found to have at run time.
#![expect(
    clippy::inline_always,
    reason = "a loop is compiled for wider vectors only where it is inlined into what asks for them"
)]

use rten_simd::ops::{BitOps, FloatOps, NarrowSaturate, NumOps};
use rten_simd::{Isa, SimdOp};
use rten_vecmath::{MinMax, Normalize, NormalizeOptions, Sum, SumSquareSub};

/// Prevents a deviation of zero; the model was trained with this value.
const EPSILON: f32 = 1e-12;

/// The rounding of one row: `number = (small - zero) * scale`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rounding {
    pub(crate) scale: f32,
    pub(crate) zero: u8,
}

/// Rounds a row to 8 bits, with its own scale. The length is a multiple of 64, and so of the vector
/// length of every processor.
pub(crate) struct Round<'a> {
    pub(crate) row: &'a [f32],
    pub(crate) small: &'a mut [u8],
}

impl SimdOp for Round<'_> {
    type Output = Rounding;

    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to 0..=255"
    )]
    fn eval<I: Isa>(self, isa: I) -> Rounding {
        let (least, most) = MinMax::new(self.row).eval(isa);
        // The range of every row includes zero, so that zeros stay exact.
        let (least, most) = (least.min(0.0), most.max(0.0));
        let scale = ((most - least) / 255.0).max(f32::MIN_POSITIVE);
        let zero = (-least / scale).round_ties_even().clamp(0.0, 255.0) as u8;
        let (floats, integers) = (isa.f32(), isa.i32());
        let a_unit = floats.splat(1.0 / scale);
        let shift = integers.splat(i32::from(zero));
        let at_once = isa.u8().len();
        for (small, row) in self
            .small
            .chunks_exact_mut(at_once)
            .zip(self.row.chunks_exact(at_once))
        {
            let [a, b, c, d] = floats.load_many::<4>(row).map(
                #[inline(always)]
                |it| integers.add(floats.to_int_round(floats.mul(it, a_unit)), shift),
            );
            let (low, high) = (
                integers.narrow_saturate(a, b),
                integers.narrow_saturate(c, d),
            );
            isa.u8().store(isa.i16().narrow_saturate(low, high), small);
        }
        Rounding { scale, zero }
    }
}

/// Converts the sums of one row of a product of rounded numbers to the numbers they represent.
pub(crate) struct Restore<'a> {
    pub(crate) sums: &'a [i32],
    pub(crate) by: Rounding,
    pub(crate) weights: &'a [i32],
    pub(crate) scales: &'a [f32],
    pub(crate) biases: &'a [f32],
    pub(crate) row: &'a mut [f32],
}

impl SimdOp for Restore<'_> {
    type Output = ();

    #[inline(always)]
    #[expect(
        clippy::cast_precision_loss,
        reason = "as exact as the rounding before"
    )]
    fn eval<I: Isa>(self, _: I) {
        let zero = i32::from(self.by.zero);
        let sums = self.sums.iter().zip(self.weights);
        let columns = self.scales.iter().zip(self.biases);
        for ((number, (sum, weights)), (scale, bias)) in self.row.iter_mut().zip(sums).zip(columns)
        {
            let sum = (sum - zero * weights) as f32;
            *number = sum.mul_add(self.by.scale * scale, *bias);
        }
    }
}

/// Adds the second row to the first.
pub(crate) struct Add<'a>(pub(crate) &'a mut [f32], pub(crate) &'a [f32]);

impl SimdOp for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, _: I) {
        for (number, more) in self.0.iter_mut().zip(self.1) {
            *number += more;
        }
    }
}

/// Normalizes a row to mean zero and deviation one, then applies the trained gain and shift.
pub(crate) fn normalize(row: &mut [f32], gain: &[f32], shift: &[f32]) {
    let count = count(row.len());
    let mean = Sum::new(row).dispatch() / count;
    let variance = SumSquareSub::new(row, mean).dispatch() / count;
    let options = NormalizeOptions {
        pre_scale_bias: mean,
        scale: 1.0 / (variance + EPSILON).sqrt(),
        element_scale: Some(gain),
        element_bias: Some(shift),
        ..NormalizeOptions::default()
    };
    Normalize::new_mut(row, options).dispatch();
}

#[expect(clippy::cast_precision_loss, reason = "rows and their numbers are few")]
pub(crate) fn count(things: usize) -> f32 {
    things as f32
}

/// Multiplies every row with another one, in integers.
pub(crate) struct Products<'a, const N: usize> {
    pub(crate) rows: &'a [[i8; N]],
    pub(crate) with: &'a [i8; N],
}

impl<const N: usize> SimdOp for Products<'_, N> {
    type Output = Vec<i32>;

    #[inline(always)]
    fn eval<I: Isa>(self, _: I) -> Vec<i32> {
        let mut products = Vec::with_capacity(self.rows.len());
        for row in self.rows {
            let mut sum = 0;
            for (a, b) in row.iter().zip(self.with) {
                sum += i32::from(i16::from(*a) * i16::from(*b));
            }
            products.push(sum);
        }
        products
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_rounded_is_near_what_it_was(row in proptest::collection::vec(-50.0_f32..50.0, 64)) {
            let mut small = [0; 64];
            let by = Round { row: &row, small: &mut small }.dispatch();
            for (number, small) in row.iter().zip(small) {
                let again = (f32::from(small) - f32::from(by.zero)) * by.scale;
                prop_assert!((number - again).abs() <= by.scale * 1.01, "{number} {again}");
            }
        }
    }

    #[test]
    fn nothing_rounds_to_nothing() {
        let mut small = [7; 64];
        let (row, small_row) = (&[0.0; 64], &mut small);
        let by = Round {
            row,
            small: small_row,
        }
        .dispatch();
        assert_eq!(small, [by.zero; 64]);
    }
}
