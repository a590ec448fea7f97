//! Counts of the fates of all calls.

use std::{
    collections::BTreeMap,
    fmt,
    sync::atomic::{AtomicU64, Ordering},
};

use super::fault::Fault;
use parking_lot::{Mutex, MutexGuard};

/// The number of failures that are kept to be printed.
const SAMPLES_MAX: usize = 20;
/// The maximum length of a stored failure, in characters.
const SAMPLE_CHARS_MAX: usize = 400;

/// The fate of a call, or a failure outside the calls. Each is a line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Right,
    /// An error with a reason that a fault can cause.
    Told,
    /// We ended the client, or abandoned or cancelled the call.
    Left,
    /// An HTTP connection that a fault broke, or that was refused.
    Broken,
    Unexplained,
    UnansweredOverStdio,
    UnansweredOverHttp,
    Anothers,
    AnsweredTwice,
    /// A line that is not a message.
    Garbage,
    Stuck,
    LeftOver,
}

/// The meaning of a line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Fine,
    /// Accepted if the run has faults.
    OfFaults,
    Failure,
}

impl Fate {
    const ALL: [(Self, Meaning, &str); 12] = [
        (Self::Right, Meaning::Fine, "answered right"),
        (Self::Told, Meaning::OfFaults, "errors that say why"),
        (
            Self::Left,
            Meaning::Fine,
            "left or cancelled by their client",
        ),
        (
            Self::Broken,
            Meaning::OfFaults,
            "HTTP connections broken or refused",
        ),
        (
            Self::Unexplained,
            Meaning::Failure,
            "errors that nothing explains",
        ),
        (
            Self::UnansweredOverStdio,
            Meaning::Failure,
            "unanswered over stdio",
        ),
        (
            Self::UnansweredOverHttp,
            Meaning::Failure,
            "unanswered over HTTP",
        ),
        (Self::Anothers, Meaning::Failure, "with another's answer"),
        (Self::AnsweredTwice, Meaning::Failure, "answered twice"),
        (Self::Garbage, Meaning::Failure, "lines that are no message"),
        (Self::Stuck, Meaning::Failure, "stuck sessions"),
        (Self::LeftOver, Meaning::Failure, "processes left over"),
    ];

    /// The number of fates of a call: every call has one of the first eight; the others are counted
    /// separately.
    const OF_A_CALL: usize = 8;
}

#[derive(Debug, Default)]
pub(super) struct Tally {
    calls: AtomicU64,
    fates: [AtomicU64; Fate::ALL.len()],
    faults: Mutex<BTreeMap<&'static str, u64>>,
    samples: Mutex<Vec<String>>,
}

impl Tally {
    pub(super) fn begin_call(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    pub(super) fn count(&self, fate: Fate) {
        self.fates[fate as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the fate, and stores the text if it is among the first failures.
    pub(super) fn note(&self, fate: Fate, seen: &str) {
        self.count(fate);
        let mut samples = lock(&self.samples);
        if samples.len() < SAMPLES_MAX {
            let seen: String = seen.chars().take(SAMPLE_CHARS_MAX).collect();
            let (_, _, line) = Fate::ALL[fate as usize];
            samples.push(format!("{line}: {seen}"));
        }
    }

    pub(super) fn count_fault(&self, fault: Fault) {
        *lock(&self.faults).entry(fault.name()).or_default() += 1;
    }

    pub(super) fn of(&self, fate: Fate) -> u64 {
        self.fates[fate as usize].load(Ordering::Relaxed)
    }

    pub(super) fn faults(&self) -> u64 {
        lock(&self.faults).values().sum()
    }

    /// Returns the number of calls without a fate: a bug of the soak itself.
    fn lost_count(&self) -> u64 {
        let fates = Fate::ALL.iter().take(Fate::OF_A_CALL);
        let known: u64 = fates.map(|(fate, ..)| self.of(*fate)).sum();
        self.calls().abs_diff(known)
    }

    /// Returns true if there was no failure.
    pub(super) fn is_clean(&self, has_faults: bool) -> bool {
        let is_fine = |(fate, meaning, _): &(Fate, Meaning, &str)| match meaning {
            Meaning::Fine => true,
            Meaning::OfFaults => has_faults || self.of(*fate) == 0,
            Meaning::Failure => self.of(*fate) == 0,
        };
        self.calls() > 0 && self.lost_count() == 0 && Fate::ALL.iter().all(is_fine)
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<36} {:>10}", "calls", self.calls())?;
        for (fate, _, line) in Fate::ALL {
            writeln!(f, "{line:<36} {:>10}", self.of(fate))?;
        }
        if self.lost_count() > 0 {
            writeln!(
                f,
                "{:<36} {:>10}",
                "calls not accounted for",
                self.lost_count()
            )?;
        }
        writeln!(f, "{:<36} {:>10}", "faults", self.faults())?;
        for (name, count) in lock(&self.faults).iter() {
            writeln!(f, "  {name:<34} {count:>10}")?;
        }
        for sample in lock(&self.samples).iter() {
            writeln!(f, "! {sample}")?;
        }
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fate_stands_at_its_own_place() {
        for (at, (fate, ..)) in Fate::ALL.iter().enumerate() {
            assert_eq!(*fate as usize, at);
        }
        assert_eq!(Fate::ALL[Fate::OF_A_CALL].0, Fate::AnsweredTwice);
    }

    #[test]
    fn only_failures_make_a_run_fail_and_a_lost_call_is_one() {
        let tally = Tally::default();
        assert!(!tally.is_clean(true), "a run without calls fails");
        tally.begin_call();
        assert!(!tally.is_clean(true), "a call without a fate fails");
        tally.count(Fate::Told);
        assert!(tally.is_clean(true) && !tally.is_clean(false));
        tally.note(Fate::AnsweredTwice, "call 1");
        assert!(!tally.is_clean(true));
        let shown = tally.to_string();
        assert!(shown.contains("! answered twice: call 1"), "{shown}");
    }
}
