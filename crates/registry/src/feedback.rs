//! Requests learned from use: those after which a call of a tool succeeded, for each client and project. They
//! are texts of the tool, like the example requests of `requests.rs`, in searches of their client and project.
//!
//! Words that occur in the text of no tool are neither stored nor embedded, so no value and no secret is.

use std::collections::BTreeMap;
use std::mem;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::disk::Disk;
use crate::embedding::{LazyEncoder, Vector};
use crate::limits::{LEARNED_A_TOOL_MAX, LEARNED_MAX};
use crate::words::ParsedQuery;
use crate::{Entry, RegistryError};

/// The requests learned from the calls of all clients. Learning accesses memory only;
/// [`RelevanceFeedback::flush`] adds what is new to the file, so several processes may share one file.
#[derive(Debug)]
pub struct RelevanceFeedback {
    disk: Disk,
    encoder: LazyEncoder,
    /// Never held across a file operation or an embedding, because calls learn on the event loop.
    state: Mutex<FeedbackState>,
    /// Held by a flush across its file operations, so that only one runs at a time.
    flushing: Mutex<()>,
}

#[derive(Debug, Default)]
struct FeedbackState {
    known: LearnedRequests,
    /// Outcomes that are known and not in the file.
    fresh: Vec<CallOutcome>,
    /// Outcomes whose request has no embedding yet.
    pending: Vec<(CallOutcome, String)>,
}

/// By the tool's address, which a rename of its server changes (`rename.rs`); the latest last.
type LearnedRequests = BTreeMap<String, Vec<LearnedRequest>>;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LearnedRequest {
    /// The client and project.
    whose: String,
    /// Of the definition that was called.
    pub(crate) digest: String,
    pub(crate) stems: Vec<String>,
    /// The bytes of its embedding; none if embeddings were off, or another encoder made it.
    pub(crate) vector: Vec<u8>,
    /// The encoder that made the embedding.
    #[serde(default)]
    encoder: String,
    /// The time of the last successful call after it, in Unix seconds.
    at: u64,
}

#[derive(Debug, Clone)]
struct CallOutcome {
    tool: String,
    request: LearnedRequest,
    ok: bool,
}

/// The learned requests that one search uses.
#[derive(Debug, Clone)]
pub struct Learned {
    /// The requests.
    pub feedback: Arc<RelevanceFeedback>,
    /// The client and project; a value that begins with `@` selects all clients of the project.
    pub whose: String,
}

impl RelevanceFeedback {
    /// Reads the stored requests; a file that is damaged or of an earlier version reads as empty.
    /// `embeds`: requests are compared by their embeddings too.
    pub fn open(folder: &Path, embeds: bool) -> Self {
        let disk = Disk::new(folder);
        let known = read(&disk);
        Self {
            disk,
            encoder: LazyEncoder::new(embeds),
            state: Mutex::new(FeedbackState {
                known,
                ..FeedbackState::default()
            }),
            flushing: Mutex::default(),
        }
    }

    /// Records the outcome of a call `now` (Unix seconds) after a request, of which `lesson` has the words that
    /// occur in the text of some tool. A failed call removes the request from the tool.
    pub fn learn(&self, whose: &str, lesson: &str, entry: &Entry, ok: bool, now: u64) {
        let ParsedQuery::Words(wanted) = ParsedQuery::of(lesson) else {
            return;
        };
        let request = LearnedRequest {
            whose: whose.to_owned(),
            digest: entry.tool.digest().to_string(),
            stems: wanted.words.into_iter().map(|word| word.stem).collect(),
            vector: Vec::new(),
            encoder: encoder::MODEL.to_owned(),
            at: now,
        };
        let tool = entry.at.to_string();
        let outcome = CallOutcome { tool, request, ok };
        self.state.lock().pending.push((outcome, lesson.to_owned()));
    }

    /// Embeds the requests of the latest calls, a few milliseconds each, from when on searches use them.
    pub(crate) fn absorb(&self) {
        let mut pending = mem::take(&mut self.state.lock().pending);
        for (outcome, text) in pending.iter_mut().filter(|(outcome, _)| outcome.ok) {
            let vector = self.encoder.get().and_then(|it| it.encode(text).ok());
            outcome.request.vector =
                vector.map_or_else(Vec::new, |it| Vector::of(&it).to_bytes().collect());
        }
        let mut state = self.state.lock();
        for (outcome, _) in pending {
            add(&mut state.known, &outcome);
            state.fresh.push(outcome);
        }
    }

    /// Adds the new requests to the file atomically; after a failure they are kept for the next
    /// flush. Waits at most `wait` for another process's lock. Blocks, so call it on a blocking
    /// thread.
    pub fn flush(&self, wait: Duration) -> Result<(), RegistryError> {
        let _flushing = self.flushing.lock();
        self.absorb();
        let fresh = self.state.lock().fresh.clone();
        if fresh.is_empty() {
            return Ok(());
        }
        let _turn = self.disk.take_turn_within(wait)?;
        let mut known = read(&self.disk);
        for outcome in &fresh {
            add(&mut known, outcome);
        }
        bound(&mut known);
        let text = serde_json::to_vec(&known).map_err(std::io::Error::from)?;
        self.disk.write(FILE, &text)?;
        let mut state = self.state.lock();
        state.fresh.drain(..fresh.len());
        for outcome in &state.fresh {
            add(&mut known, outcome);
        }
        state.known = known;
        Ok(())
    }

    /// Removes everything learned. Blocks like [`RelevanceFeedback::flush`].
    pub fn reset(&self) -> Result<(), RegistryError> {
        let _flushing = self.flushing.lock();
        let _turn = self.disk.take_turn()?;
        self.disk.write(FILE, b"{}")?;
        *self.state.lock() = FeedbackState::default();
        Ok(())
    }

    /// Returns the number of learned requests. Blocks while the latest are embedded.
    pub fn count(&self) -> usize {
        self.absorb();
        self.state.lock().known.values().map(Vec::len).sum()
    }
}

impl Learned {
    /// Calls `visit` with each learned request of this client and project, and its tool's address.
    pub(crate) fn each(&self, mut visit: impl FnMut(&str, &LearnedRequest)) {
        self.feedback.absorb();
        let of_all = self.whose.starts_with('@');
        let is_mine = |it: &str| it == self.whose || of_all && it.ends_with(&self.whose);
        for (tool, requests) in &self.feedback.state.lock().known {
            let mine = requests.iter().filter(|it| is_mine(&it.whose));
            mine.for_each(|it| visit(tool, it));
        }
    }
}

fn add(known: &mut LearnedRequests, outcome: &CallOutcome) {
    let new = &outcome.request;
    let requests = known.entry(outcome.tool.clone()).or_default();
    let is_other = |it: &LearnedRequest| it.whose != new.whose || it.stems != new.stems;
    requests.retain(|it| it.digest == new.digest && is_other(it));
    if outcome.ok {
        requests.push(new.clone());
        requests.drain(..requests.len().saturating_sub(LEARNED_A_TOOL_MAX));
    }
}

/// Removes all but the latest [`LEARNED_MAX`] requests.
fn bound(known: &mut LearnedRequests) {
    let mut times: Vec<u64> = known.values().flatten().map(|it| it.at).collect();
    times.sort_unstable_by(|a, b| b.cmp(a));
    let oldest = times.get(LEARNED_MAX).map_or(0, |at| at + 1);
    for requests in known.values_mut() {
        requests.retain(|it| it.at >= oldest);
    }
    known.retain(|_, requests| !requests.is_empty());
}

fn read(disk: &Disk) -> LearnedRequests {
    let bytes = disk.read(FILE).unwrap_or_default();
    let mut known: LearnedRequests = serde_json::from_slice(&bytes).unwrap_or_default();
    for request in known.values_mut().flatten() {
        // Embeddings of different encoders have nothing in common.
        if request.encoder != encoder::MODEL {
            request.vector.clear();
        }
    }
    known
}

pub(crate) const FILE: &str = "learned.json";

#[cfg(test)]
mod tests {
    use files::Lock;

    use super::*;
    use crate::tests::tools;

    const WAIT: Duration = Duration::from_secs(20);

    fn entry(at: &str, description: &str) -> Entry {
        let at: tool::ToolRef = at.parse().unwrap();
        let mut tools = tools(&[&format!("{}: {description}", at.tool)]);
        Entry::plain(at, tools.remove(0))
    }

    fn open(folder: &Path) -> RelevanceFeedback {
        RelevanceFeedback::open(folder, false)
    }

    /// Returns the words of the requests that one client and project has taught.
    fn known(feedback: &Arc<RelevanceFeedback>, whose: &str) -> Vec<String> {
        let learned = Learned {
            feedback: Arc::clone(feedback),
            whose: whose.to_owned(),
        };
        let mut all = Vec::new();
        learned.each(|tool, it| all.push(format!("{tool} {}", it.stems.join(" "))));
        all
    }

    #[test]
    fn a_request_is_of_one_client_and_project_and_a_failed_call_removes_it() {
        let folder = tempfile::tempdir().unwrap();
        let feedback = Arc::new(open(folder.path()));
        let (send, other) = (entry("mail/send", "Sends"), entry("post/send", "Sends"));
        feedback.learn("claude@home", "send mail", &send, true, 1);
        feedback.learn("claude@home", "send mail", &send, true, 2);
        feedback.learn("claude@home", "send mail", &other, false, 2);
        assert_eq!(known(&feedback, "claude@home"), ["mail/send send mail"]);
        assert_eq!(known(&feedback, "@home"), ["mail/send send mail"]);
        assert!(known(&feedback, "cursor@home").is_empty());
        assert!(known(&feedback, "claude@work").is_empty());
        feedback.learn("cursor@home", "send mail", &send, false, 3);
        assert_eq!(feedback.count(), 1, "the failure of another client");
        feedback.learn("claude@home", "send mail", &send, false, 3);
        assert_eq!(feedback.count(), 0);
    }

    #[test]
    fn requests_of_two_processes_add_up_and_can_be_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (open(folder.path()), open(folder.path()));
        let send = entry("mail/send", "Sends");
        one.learn("a@b", "send mail", &send, true, 1);
        other.learn("a@b", "answer mail", &send, true, 2);
        one.flush(WAIT).unwrap();
        other.flush(WAIT).unwrap();
        let all = open(folder.path());
        assert_eq!(all.count(), 2);
        all.reset().unwrap();
        assert_eq!(open(folder.path()).count(), 0);
    }

    #[test]
    fn requests_are_bounded_and_end_with_their_definition() {
        let folder = tempfile::tempdir().unwrap();
        let feedback = open(folder.path());
        for at in 0..=LEARNED_MAX {
            let tool = entry(&format!("s/t{}", at / LEARNED_A_TOOL_MAX), "Works");
            feedback.learn("a@b", &format!("w{at}"), &tool, true, at as u64);
        }
        feedback.flush(WAIT).unwrap();
        assert_eq!(feedback.count(), LEARNED_MAX);
        assert!(
            !std::fs::read_to_string(folder.path().join(FILE))
                .unwrap()
                .contains("\"w0\"")
        );
        let tool = entry("s/t1", "Works");
        for at in 0..LEARNED_A_TOOL_MAX {
            feedback.learn("a@b", &format!("v{at}"), &tool, true, u64::MAX - 1);
        }
        assert_eq!(
            feedback.count(),
            LEARNED_MAX,
            "of the tool only the latest stay"
        );
        let changed = entry("s/t1", "Works otherwise");
        feedback.learn("a@b", "w", &changed, true, u64::MAX - 1);
        assert_eq!(feedback.count(), LEARNED_MAX - LEARNED_A_TOOL_MAX + 1);
    }

    #[test]
    fn a_file_of_an_earlier_version_reads_as_empty() {
        let folder = tempfile::tempdir().unwrap();
        let old = r#"{"me@here":{"mail":{"mail/send":{"value":1.0,"at":1}}}}"#;
        std::fs::write(folder.path().join(FILE), old).unwrap();
        assert_eq!(open(folder.path()).count(), 0);
    }

    #[test]
    fn an_embedding_of_another_encoder_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let feedback = RelevanceFeedback::open(folder.path(), true);
        let send = entry("mail/send", "Sends");
        feedback.learn("a@b", "send mail", &send, true, 1);
        feedback.flush(WAIT).unwrap();
        let file = folder.path().join(FILE);
        let has_vector = || {
            let known = RelevanceFeedback::open(folder.path(), true);
            let state = known.state.lock();
            !state.known["mail/send"][0].vector.is_empty()
        };
        assert!(has_vector());
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, text.replace(encoder::MODEL, "another")).unwrap();
        assert!(!has_vector());
    }

    #[test]
    fn learning_waits_for_no_lock_of_another_process() {
        let folder = tempfile::tempdir().unwrap();
        let feedback = open(folder.path());
        let send = entry("mail/send", "Sends");
        feedback.learn("a@b", "send mail", &send, true, 1);
        let held = Lock::take(&feedback.disk.path("lock")).unwrap();
        feedback.flush(Duration::ZERO).unwrap_err();
        std::thread::scope(|scope| {
            let flushing = scope.spawn(|| feedback.flush(WAIT));
            // The flush has started and waits for the lock.
            while feedback.flushing.try_lock().is_some() {
                std::thread::yield_now();
            }
            feedback.learn("a@b", "answer mail", &send, true, 2);
            assert_eq!(feedback.count(), 2);
            drop(held);
            flushing.join().unwrap().unwrap();
        });
        assert_eq!(feedback.count(), 2);
        feedback.flush(WAIT).unwrap();
        assert_eq!(open(folder.path()).count(), 2);
    }
}
