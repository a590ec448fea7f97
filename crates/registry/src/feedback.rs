//! Relevance feedback: words of requests and the tools that were called after them, for each client
//! and project.
//!
//! Only stems of words that occur in the text of some tool are stored, so no value and no secret is
//! stored. Each outcome decays over time and has a bounded effect on a tool's rank.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use tool::ToolRef;

use crate::RegistryError;
use crate::disk::Disk;
use crate::limits::{FEEDBACK_HALF_LIFE_S, FEEDBACK_MAX};

/// The outcomes of the calls of all clients. Learning and searching access memory only;
/// [`RelevanceFeedback::flush`] adds the new outcomes to the file, so several processes may share
/// one file.
#[derive(Debug)]
pub struct RelevanceFeedback {
    disk: Disk,
    /// Never held across a file operation, because calls learn on the event loop.
    state: Mutex<FeedbackState>,
    /// Held by a flush across its file operations, so that only one runs at a time.
    flushing: Mutex<()>,
}

#[derive(Debug, Default)]
struct FeedbackState {
    known: LearnedWeights,
    fresh: Vec<CallOutcome>,
}

/// Weights by client and project, then by word, then by tool.
type LearnedWeights = BTreeMap<String, BTreeMap<String, BTreeMap<String, Weight>>>;

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Weight {
    /// The number of successful calls minus the number of failed calls, weighted by their age at
    /// the time of writing.
    value: f32,
    /// The time of writing, in Unix seconds.
    at: u64,
}

#[derive(Debug, Clone)]
struct CallOutcome {
    whose: String,
    words: Vec<String>,
    tool: String,
    value: f32,
    at: u64,
}

/// The feedback that one search uses.
#[derive(Debug, Clone)]
pub struct Learned {
    /// The outcomes of earlier calls.
    pub feedback: Arc<RelevanceFeedback>,
    /// The client and project; a value that begins with `@` selects all clients of the project.
    pub whose: String,
    /// The current time, in Unix seconds.
    pub now: u64,
}

impl RelevanceFeedback {
    /// Reads the stored feedback; a damaged file reads as empty.
    pub fn open(folder: &Path) -> Self {
        let disk = Disk::new(folder);
        let known = read(&disk);
        let state = Mutex::new(FeedbackState {
            known,
            fresh: Vec::new(),
        });
        Self {
            disk,
            state,
            flushing: Mutex::default(),
        }
    }

    /// Records the outcome of a call after a search for these words.
    pub fn learn(&self, whose: &str, words: &[String], tool: &ToolRef, ok: bool, now: u64) {
        let outcome = CallOutcome {
            whose: whose.to_owned(),
            words: words.to_vec(),
            tool: tool.to_string(),
            value: if ok { 1.0 } else { -1.0 },
            at: now,
        };
        let mut state = self.state();
        add(&mut state.known, &outcome);
        state.fresh.push(outcome);
    }

    /// Adds the new outcomes to the file atomically; after a failure they are kept for the next
    /// flush. Waits at most `wait` for another process's lock. Blocks, so call it on a blocking
    /// thread.
    pub fn flush(&self, wait: Duration) -> Result<(), RegistryError> {
        let _flushing = self.flushing.lock();
        let fresh = self.state().fresh.clone();
        let Some(newest) = fresh.iter().map(|outcome| outcome.at).max() else {
            return Ok(());
        };
        let _turn = self.disk.take_turn_within(wait)?;
        let mut known = read(&self.disk);
        for outcome in &fresh {
            add(&mut known, outcome);
        }
        bound(&mut known, newest);
        let text = serde_json::to_vec(&known).map_err(std::io::Error::from)?;
        self.disk.write(FILE, &text)?;
        let mut state = self.state();
        state.fresh.drain(..fresh.len());
        for outcome in &state.fresh {
            add(&mut known, outcome);
        }
        state.known = known;
        Ok(())
    }

    /// Removes all feedback. Blocks like [`RelevanceFeedback::flush`].
    pub fn reset(&self) -> Result<(), RegistryError> {
        let _flushing = self.flushing.lock();
        let _turn = self.disk.take_turn()?;
        self.disk.write(FILE, b"{}")?;
        *self.state() = FeedbackState::default();
        Ok(())
    }

    /// Returns the number of stored pairs of a word and a tool.
    pub fn count(&self) -> usize {
        let state = self.state();
        let words = state.known.values().flat_map(BTreeMap::values);
        words.map(BTreeMap::len).sum()
    }

    fn state(&self) -> MutexGuard<'_, FeedbackState> {
        self.state.lock()
    }
}

impl Learned {
    /// Returns the learned score of a tool for these words, from -1 to 1; 0 unless at least half of
    /// the words have feedback for this tool.
    pub(crate) fn opinion(&self, words: &[String], tool: &ToolRef) -> f32 {
        let tool = tool.to_string();
        let state = self.feedback.state();
        let of_whom = state.known.iter().filter(|(whose, _)| self.is_mine(whose));
        let mut best = 0.0_f32;
        for (_, known) in of_whom {
            let weights = words.iter().filter_map(|word| known.get(word)?.get(&tool));
            let values: Vec<f32> = weights.map(|weight| weight.now(self.now)).collect();
            if 2 * values.len() >= words.len() && !values.is_empty() {
                let opinion = (values.iter().sum::<f32>() / precise(words.len())).tanh();
                best = if opinion.abs() > best.abs() {
                    opinion
                } else {
                    best
                };
            }
        }
        best
    }

    fn is_mine(&self, whose: &str) -> bool {
        whose == self.whose || self.whose.starts_with('@') && whose.ends_with(&self.whose)
    }
}

impl Weight {
    fn now(self, now: u64) -> f32 {
        let lives = precise_seconds(now.saturating_sub(self.at)) / FEEDBACK_HALF_LIFE_S;
        self.value * 0.5_f32.powf(lives)
    }
}

fn add(known: &mut LearnedWeights, outcome: &CallOutcome) {
    let words = known.entry(outcome.whose.clone()).or_default();
    for word in &outcome.words {
        let tools = words.entry(word.clone()).or_default();
        let weight = tools.entry(outcome.tool.clone()).or_default();
        let value = weight.now(outcome.at) + outcome.value;
        *weight = Weight {
            value: value.clamp(-WEIGHT_MAX, WEIGHT_MAX),
            at: outcome.at,
        };
    }
}

/// Removes faded weights, and all but the strongest [`FEEDBACK_MAX`].
fn bound(known: &mut LearnedWeights, now: u64) {
    let weights = known
        .values()
        .flat_map(BTreeMap::values)
        .flat_map(BTreeMap::values);
    let mut strengths: Vec<f32> = weights.map(|weight| weight.now(now).abs()).collect();
    strengths.sort_unstable_by(|a, b| b.total_cmp(a));
    let least = strengths.get(FEEDBACK_MAX).copied().unwrap_or(FADED);
    for words in known.values_mut() {
        for tools in words.values_mut() {
            tools.retain(|_, weight| weight.now(now).abs() > least);
        }
        words.retain(|_, tools| !tools.is_empty());
    }
    known.retain(|_, words| !words.is_empty());
}

fn read(disk: &Disk) -> LearnedWeights {
    let bytes = disk.read(FILE).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

#[expect(clippy::cast_precision_loss, reason = "a request has a few words")]
fn precise(count: usize) -> f32 {
    count as f32
}

#[expect(clippy::cast_precision_loss, reason = "hours do not matter")]
fn precise_seconds(seconds: u64) -> f32 {
    seconds as f32
}

pub(crate) const FILE: &str = "learned.json";

/// The maximum absolute weight: further calls with the same outcome have no effect, so that a habit
/// can be unlearned.
const WEIGHT_MAX: f32 = 4.0;

/// The absolute weight below which an outcome is removed.
const FADED: f32 = 0.02;

#[cfg(test)]
mod tests {
    use files::Lock;

    use super::*;

    const WAIT: Duration = Duration::from_secs(20);

    const DAY: u64 = 86_400;

    fn at(name: &str) -> ToolRef {
        name.parse().unwrap()
    }

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_lesson_is_for_like_requests_of_one_client_and_fades() {
        let folder = tempfile::tempdir().unwrap();
        let feedback = Arc::new(RelevanceFeedback::open(folder.path()));
        feedback.learn(
            "claude@home",
            &words("send mail"),
            &at("mail/send"),
            true,
            DAY,
        );
        feedback.learn(
            "claude@home",
            &words("send mail"),
            &at("post/send"),
            false,
            DAY,
        );
        let opinion = |whose: &str, text: &str, tool: &str, now: u64| {
            let learned = Learned {
                feedback: Arc::clone(&feedback),
                whose: whose.to_owned(),
                now,
            };
            learned.opinion(&words(text), &at(tool))
        };
        let fresh = opinion("claude@home", "send mail", "mail/send", DAY);
        assert!(fresh > 0.7, "{fresh}");
        assert!(opinion("claude@home", "send mail", "post/send", DAY) < -0.7);
        assert!(opinion("claude@home", "send mail", "mail/send", 90 * DAY) < fresh / 4.0);
        assert!(opinion("@home", "send mail", "mail/send", DAY) > 0.7);
        for (whose, text) in [
            ("cursor@home", "send mail"),
            ("claude@work", "send mail"),
            ("claude@home", "send a parcel abroad"),
        ] {
            assert!(
                opinion(whose, text, "mail/send", DAY).abs() < 1e-6,
                "{whose} {text}"
            );
        }
    }

    #[test]
    fn lessons_of_two_processes_add_up_and_can_be_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (
            RelevanceFeedback::open(folder.path()),
            RelevanceFeedback::open(folder.path()),
        );
        one.learn("a@b", &words("send mail"), &at("mail/send"), true, DAY);
        other.learn("a@b", &words("read mail"), &at("mail/read"), true, DAY);
        one.flush(WAIT).unwrap();
        other.flush(WAIT).unwrap();
        let all = RelevanceFeedback::open(folder.path());
        assert_eq!(all.count(), 4);
        all.reset().unwrap();
        assert_eq!(RelevanceFeedback::open(folder.path()).count(), 0);
    }

    #[test]
    fn the_file_is_bounded_and_the_weakest_go() {
        let folder = tempfile::tempdir().unwrap();
        let feedback = RelevanceFeedback::open(folder.path());
        feedback.learn("a@b", &["old".to_owned()], &at("s/old"), true, 0);
        let many: Vec<String> = (0..FEEDBACK_MAX).map(|word| format!("w{word}")).collect();
        for _ in 0..2 {
            feedback.learn("a@b", &many, &at("s/new"), true, 30 * DAY);
        }
        feedback.flush(WAIT).unwrap();
        assert!(feedback.count() <= FEEDBACK_MAX);
        assert!(!feedback.state().known["a@b"].contains_key("old"));
    }

    #[test]
    fn learning_waits_for_no_lock_of_another_process() {
        let folder = tempfile::tempdir().unwrap();
        let feedback = RelevanceFeedback::open(folder.path());
        feedback.learn("a@b", &words("send mail"), &at("mail/send"), true, DAY);
        let held = Lock::take(&feedback.disk.path("lock")).unwrap();
        feedback.flush(Duration::ZERO).unwrap_err();
        std::thread::scope(|scope| {
            let flushing = scope.spawn(|| feedback.flush(WAIT));
            // The flush has started and waits for the lock.
            while feedback.flushing.try_lock().is_some() {
                std::thread::yield_now();
            }
            feedback.learn("a@b", &words("read mail"), &at("mail/read"), true, DAY);
            assert_eq!(feedback.count(), 4);
            drop(held);
            flushing.join().unwrap().unwrap();
        });
        assert_eq!(feedback.count(), 4);
        feedback.flush(WAIT).unwrap();
        assert_eq!(RelevanceFeedback::open(folder.path()).count(), 4);
    }
}
