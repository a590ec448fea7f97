//! A histogram of times with buckets that are each about a fifth wider than the one before: a
//! percentile is accurate to 20 %, and a tool's times of a day need only a few numbers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The number of buckets for each doubling.
const STEPS: u32 = 4;

/// The number of times in each bucket.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Histogram(BTreeMap<u32, u64>);

impl Histogram {
    pub(super) fn count(&mut self, micros: u64) {
        *self.0.entry(bucket_of(micros)).or_default() += 1;
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (bucket, count) in &other.0 {
            *self.0.entry(*bucket).or_default() += count;
        }
    }

    /// Returns the time in microseconds that `percent` of the times do not exceed; `None` if there are
    /// none.
    pub(super) fn percentile(&self, percent: u64) -> Option<u64> {
        let all: u64 = self.0.values().sum();
        let wanted = (all * percent).div_ceil(100).max(1);
        let mut seen = 0;
        let found = self.0.iter().find(|(_, count)| {
            seen += **count;
            seen >= wanted
        });
        found.map(|(bucket, _)| end_of(*bucket))
    }
}

/// Returns the bucket of a time: four for each doubling, numbered from 0.
fn bucket_of(micros: u64) -> u32 {
    let micros = micros.max(1);
    let doublings = micros.ilog2();
    let rest = u128::from(micros - (1 << doublings));
    let quarter = (rest * u128::from(STEPS)) >> doublings;
    doublings * STEPS + u32::try_from(quarter).unwrap_or(STEPS - 1)
}

fn end_of(bucket: u32) -> u64 {
    let base = 1u128 << (bucket / STEPS).min(64);
    let rest = base * u128::from(bucket % STEPS + 1);
    u64::try_from(base + rest.div_ceil(u128::from(STEPS))).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_right_to_a_quarter() {
        let mut times = Histogram::default();
        assert_eq!(times.percentile(50), None);
        (1..=10_000).for_each(|micros| times.count(micros));
        for (percent, exact) in [(50, 5_000), (95, 9_500), (100, 10_000)] {
            let found = times.percentile(percent).expect("there are times");
            assert!(
                found >= exact && found <= exact + exact / 4,
                "{percent}: {found}"
            );
        }
    }

    #[test]
    fn every_time_has_a_bucket_that_holds_it() {
        for micros in [0, 1, 2, 3, 7, 1_000, u64::MAX / 2] {
            assert!(end_of(bucket_of(micros)) >= micros, "{micros}");
        }
    }
}
