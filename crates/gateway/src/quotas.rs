//! The use of quotas. Counting touches memory alone; each count is in the file a moment later, so that a
//! restart continues with it.

use std::{
    cmp::Reverse,
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ::policy::{Quota, QuotaSubject, QuotaUnit};
use files::{Lock, clock::now_s, read_text_within, write_whole};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use telemetry::{COMMAND_LINE, estimate_tokens};
use tool::Digest;
use tracing::warn;

use crate::{
    built_in::is_own,
    call_context::CallContext,
    dispatcher::hook::{CallHook, ToolCall},
    dispatcher::record::CallNote,
    error::ToolError,
    render,
    used_up_quota::UsedUpQuota,
};

const FILE: &str = "quotas.json";

const FILE_BYTES_MAX: usize = 16 << 20;

/// The time after a count until it is written; a process that is killed loses no more than this.
const WRITE_AFTER: Duration = Duration::from_millis(200);

/// The wait for another process that writes the file.
const LOCK_WAIT: Duration = Duration::from_secs(2);

/// The most repeated calls that are counted; beyond it, all of these counts begin again.
const REPEATS_MAX: usize = 100_000;

/// The longest values of `each` that are shown, in characters.
const VALUES_CHARS_MAX: usize = 200;

/// The most uses of one quota that are listed.
const USES_MAX: usize = 20;

/// The digits of each of the two digests in a key.
const KEY_DIGITS: usize = 16;

/// The digest of the quota, and that of the text that counted calls have in common: names of people are
/// not stored.
type QuotaKey = String;

/// A quota of the configuration.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QuotaStatus {
    /// Its place, counted from 1.
    pub number: usize,
    /// As it is written.
    pub quota: Map<String, Value>,
    /// Its limit: `100 calls a day`.
    pub about: String,
    /// The amount in it.
    pub limit: u64,
    /// The most used ones, of at most 20; none of repeated calls.
    pub uses: Vec<QuotaUse>,
}

/// The use of a quota at this time.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QuotaUse {
    /// The values of `each`, if there are any and a call since the start of the daemon had them.
    pub counted: Option<String>,
    /// The amount that is used.
    pub used: u64,
    /// The time at which the quota is whole again, in seconds since 1970.
    pub resets_at: u64,
}

#[derive(Debug)]
pub(crate) struct QuotaBook {
    file: PathBuf,
    counts: Mutex<QuotaCounts>,
    /// Held by the one write at a time, across its file operations.
    writing: Mutex<()>,
    is_write_due: AtomicBool,
}

#[derive(Debug, Default)]
struct QuotaCounts {
    kept: HashMap<QuotaKey, QuotaCount>,
    /// Sessions end with the process, and so do these.
    repeats: HashMap<QuotaKey, QuotaCount>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct QuotaCount {
    /// The time at which the quota is whole again, in Unix seconds.
    ends_s: u64,
    used: u64,
    /// The part of `used` that the file does not have yet.
    #[serde(skip)]
    unwritten: u64,
    /// The values of `each`, for people; never written.
    #[serde(skip)]
    counted: Option<String>,
}

/// The quotas of tokens that a call uses; its tokens are added when they are known.
#[derive(Debug)]
pub(crate) struct TokenCharge {
    book: Arc<QuotaBook>,
    keys: Vec<(QuotaKey, u64)>,
}

impl TokenCharge {
    pub(crate) fn add(&self, tokens: u64) {
        let mut counts = self.book.counts.lock();
        for (key, ends_s) in &self.keys {
            count_at(&mut counts.kept, key, *ends_s).add(tokens);
        }
        drop(counts);
        self.book.schedule_write();
    }
}

impl CallHook for Arc<QuotaBook> {
    /// Counts a call in all quotas that limit it, or in none if one of them is used up.
    fn before(
        &self,
        call: &ToolCall<'_>,
        context: &CallContext,
        note: &mut CallNote,
    ) -> Result<(), ToolError> {
        let (entry, quotas) = (call.entry, &*call.settings.quotas);
        if quotas.is_empty() || is_own(entry) {
            return Ok(());
        }
        let connection = context.client.as_ref().and_then(|it| it.connection);
        let session = connection.map(|it| it.to_string());
        let subject = QuotaSubject {
            client: &context.policy.name,
            caller: context.admitted_as.as_deref().unwrap_or_default(),
            session: session.as_deref().unwrap_or_default(),
            server: entry.at.server.as_str(),
            tool: &entry.at.tool,
            arguments: call.arguments.as_str(),
        };
        let charge = self.take_at(quotas, &subject, now_s());
        if let Some(charge) = charge.map_err(ToolError::QuotaUsedUp)? {
            note.on_end.push(Box::new(move |record| {
                charge.add(estimate_tokens(record.bytes_in + record.bytes_sent));
            }));
        }
        Ok(())
    }
}

impl QuotaBook {
    /// Reads the counts of an earlier process; a damaged file counts as empty.
    pub(crate) fn open(folder: &Path) -> Arc<Self> {
        let file = folder.join(FILE);
        let kept = read(&file);
        Arc::new(Self {
            file,
            counts: Mutex::new(QuotaCounts {
                kept,
                ..QuotaCounts::default()
            }),
            writing: Mutex::default(),
            is_write_due: AtomicBool::new(false),
        })
    }

    fn take_at(
        self: &Arc<Self>,
        quotas: &[Quota],
        call: &QuotaSubject<'_>,
        now_s: u64,
    ) -> Result<Option<TokenCharge>, Box<UsedUpQuota>> {
        let quotas = (1..).zip(quotas).filter(|(_, quota)| quota.fits(call));
        let quotas: Vec<(usize, &Quota, QuotaKey)> = quotas
            .map(|(number, quota)| {
                let key = quota_digest(quota).to_owned() + &short_digest(&quota.key(call));
                (number, quota, key)
            })
            .collect();
        if quotas.is_empty() {
            return Ok(None);
        }
        let mut counts = self.counts.lock();
        for (number, quota, key) in &quotas {
            let ends_s = quota.end_of(now_s);
            if counts.of(quota, key, ends_s).used >= quota.limit {
                return Err(Box::new(UsedUpQuota {
                    tool: format!("{}/{}", call.server, call.tool),
                    quota: quota.to_string(),
                    number: *number,
                    is_repeat: quota.unit == QuotaUnit::Repeats,
                    resets: Duration::from_secs(ends_s - now_s),
                }));
            }
        }
        let mut charge = Vec::new();
        for (_, quota, key) in quotas {
            let ends_s = quota.end_of(now_s);
            let count = counts.of(quota, &key, ends_s);
            count.name(quota, call);
            match quota.unit {
                QuotaUnit::Tokens => charge.push((key, ends_s)),
                _ => count.add(1),
            }
        }
        drop(counts);
        self.schedule_write();
        Ok((!charge.is_empty()).then(|| TokenCharge {
            book: Arc::clone(self),
            keys: charge,
        }))
    }

    /// Returns these quotas with their use at this moment.
    pub(crate) fn list_uses(&self, quotas: &[Quota]) -> Vec<QuotaStatus> {
        let counts = self.counts.lock();
        let now_s = now_s();
        let uses_of = |quota: &Quota| {
            let digest = quota_digest(quota);
            let mut uses: Vec<QuotaUse> = (counts.kept.iter())
                .filter(|(key, count)| key.starts_with(digest) && count.ends_s > now_s)
                .map(|(_, count)| QuotaUse {
                    counted: count.counted.clone(),
                    used: count.used,
                    resets_at: count.ends_s,
                })
                .collect();
            uses.sort_by_key(|it| Reverse(it.used));
            uses.truncate(USES_MAX);
            uses
        };
        let quotas = (1..).zip(quotas).map(|(number, quota)| QuotaStatus {
            number,
            quota: serde_json::from_str(&quota.written).unwrap_or_default(),
            about: quota.to_string(),
            limit: quota.limit,
            uses: uses_of(quota),
        });
        quotas.collect()
    }

    /// Writes the counts a moment later, off the event loop.
    fn schedule_write(self: &Arc<Self>) {
        // A call may end with the runtime; the last write is that of the gateway's end.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        if self.is_write_due.swap(true, Ordering::Relaxed) {
            return;
        }
        let book = Arc::clone(self);
        runtime.spawn(async move {
            tokio::time::sleep(WRITE_AFTER).await;
            book.is_write_due.store(false, Ordering::Relaxed);
            let _ = tokio::task::spawn_blocking(move || book.write()).await;
        });
    }

    /// Adds the counts to the file. Blocks; a failure is logged, and the counts stay for the next time.
    pub(crate) fn write(&self) {
        let _writing = self.writing.lock();
        let fresh: HashMap<QuotaKey, QuotaCount> = {
            let counts = self.counts.lock();
            let fresh = counts.kept.iter().filter(|(_, it)| it.unwritten > 0);
            fresh
                .map(|(key, count)| (key.clone(), count.clone()))
                .collect()
        };
        if fresh.is_empty() {
            return;
        }
        match self.merge(&fresh) {
            Ok(merged) => self.adopt(merged, &fresh),
            Err(error) => warn!(%error, "the use of quotas was not written"),
        }
    }

    fn merge(
        &self,
        fresh: &HashMap<QuotaKey, QuotaCount>,
    ) -> std::io::Result<HashMap<QuotaKey, QuotaCount>> {
        let _lock = Lock::take_within(&self.file.with_extension("lock"), LOCK_WAIT)?;
        let mut merged = read(&self.file);
        let now_s = now_s();
        merged.retain(|_, count| count.ends_s > now_s);
        for (key, count) in fresh.iter().filter(|(_, count)| count.ends_s > now_s) {
            count_at(&mut merged, key, count.ends_s).used += count.unwritten;
        }
        write_whole(&self.file, serde_json::to_string(&merged)?.as_bytes())?;
        Ok(merged)
    }

    /// Adopts what the file has now, which includes the counts of other processes.
    fn adopt(&self, merged: HashMap<QuotaKey, QuotaCount>, fresh: &HashMap<QuotaKey, QuotaCount>) {
        let mut counts = self.counts.lock();
        let now_s = now_s();
        counts.kept.retain(|_, count| count.ends_s > now_s);
        for (key, written) in merged {
            let count = count_at(&mut counts.kept, &key, written.ends_s);
            let of_write = fresh.get(&key).filter(|it| it.ends_s == written.ends_s);
            count.unwritten -= of_write.map_or(0, |it| it.unwritten);
            count.used = written.used + count.unwritten;
        }
    }
}

impl QuotaCounts {
    fn of(&mut self, quota: &Quota, key: &QuotaKey, ends_s: u64) -> &mut QuotaCount {
        if quota.unit != QuotaUnit::Repeats {
            return count_at(&mut self.kept, key, ends_s);
        }
        if self.repeats.len() >= REPEATS_MAX {
            self.repeats.clear();
        }
        count_at(&mut self.repeats, key, ends_s)
    }
}

impl QuotaCount {
    fn name(&mut self, quota: &Quota, call: &QuotaSubject<'_>) {
        let values = quota.values(call);
        if values.is_empty() || quota.unit == QuotaUnit::Repeats || self.counted.is_some() {
            return;
        }
        let named = values
            .iter()
            .map(|it| if it.is_empty() { COMMAND_LINE } else { it });
        let named = render::join(named, ", ");
        self.counted = Some(printable::one_line_of(&named, VALUES_CHARS_MAX));
    }

    fn add(&mut self, amount: u64) {
        self.used += amount;
        self.unwritten += amount;
    }
}

/// Returns the count of a key; it begins again if it is of an earlier minute, hour or day.
fn count_at<'c>(
    counts: &'c mut HashMap<QuotaKey, QuotaCount>,
    key: &QuotaKey,
    ends_s: u64,
) -> &'c mut QuotaCount {
    let count = counts.entry(key.clone()).or_default();
    if count.ends_s < ends_s {
        (count.ends_s, count.used, count.unwritten) = (ends_s, 0, 0);
    }
    count
}

fn quota_digest(quota: &Quota) -> &str {
    quota.short_name(short_digest)
}

fn short_digest(text: &str) -> String {
    Digest::of_bytes(text.as_bytes()).short(KEY_DIGITS)
}

fn read(file: &Path) -> HashMap<QuotaKey, QuotaCount> {
    let text = read_text_within(file, FILE_BYTES_MAX).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn quotas(written: &[Value]) -> Vec<Quota> {
        let read = |it: &Value| Quota::read(it.as_object().unwrap()).unwrap();
        written.iter().map(read).collect()
    }

    const CALL: QuotaSubject<'_> = QuotaSubject {
        client: "cursor",
        caller: "oauth ann",
        session: "1",
        server: "github",
        tool: "create_issue",
        arguments: "{}",
    };

    /// A day that has not ended when the test does.
    fn today() -> u64 {
        now_s()
    }

    #[tokio::test]
    async fn parallel_calls_take_exactly_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let book = QuotaBook::open(folder.path());
        let quotas = Arc::new(quotas(&[json!({"calls": 100, "per": "day"})]));
        let now = today();
        let take = |_| {
            let (book, quotas) = (Arc::clone(&book), Arc::clone(&quotas));
            tokio::task::spawn_blocking(move || book.take_at(&quotas, &CALL, now).is_ok())
        };
        let taken = futures::future::join_all((0..300).map(take)).await;
        let taken = taken.into_iter().filter(|it| *it.as_ref().unwrap()).count();
        assert_eq!(taken, 100);
    }

    #[tokio::test]
    async fn the_use_of_a_quota_is_listed_by_its_values() {
        let folder = tempfile::tempdir().unwrap();
        let book = QuotaBook::open(folder.path());
        let two = quotas(&[
            json!({"calls": 3, "per": "day", "each": "caller"}),
            json!({"calls": 9, "per": "day"}),
        ]);
        let nobody = QuotaSubject { caller: "", ..CALL };
        for call in [&CALL, &nobody, &CALL] {
            assert!(book.take_at(&two, call, today()).is_ok());
        }
        let listed = |book: &QuotaBook| {
            let uses = book.list_uses(&two).into_iter().map(|it| it.uses);
            let shown = |it: QuotaUse| format!("{} {:?}", it.used, it.counted);
            uses.map(|uses| uses.into_iter().map(shown).collect::<Vec<_>>().join("; "))
                .collect::<Vec<_>>()
        };
        let expected = [
            "2 Some(\"oauth ann\"); 1 Some(\"(command line)\")",
            "3 None",
        ];
        assert_eq!(listed(&book), expected);
        book.write();
        assert_eq!(listed(&book), expected);
        // The file names no person.
        let next = QuotaBook::open(folder.path());
        assert_eq!(listed(&next), ["2 None; 1 None", "3 None"]);
    }

    #[tokio::test]
    async fn counts_continue_after_a_restart_and_end_with_their_time() {
        let folder = tempfile::tempdir().unwrap();
        let quotas = quotas(&[json!({"calls": 3, "per": "day", "each": "caller"})]);
        let now = today();
        for _ in 0..3 {
            let book = QuotaBook::open(folder.path());
            assert!(book.take_at(&quotas, &CALL, now).is_ok());
            book.write();
        }
        let book = QuotaBook::open(folder.path());
        assert!(book.take_at(&quotas, &CALL, now).is_err());
        let bob = QuotaSubject {
            caller: "oauth bob",
            ..CALL
        };
        assert!(book.take_at(&quotas, &bob, now).is_ok());
        assert!(book.take_at(&quotas, &CALL, now + 86_400).is_ok());
    }

    #[tokio::test]
    async fn processes_that_share_a_folder_see_the_counts_of_one_another() {
        let folder = tempfile::tempdir().unwrap();
        let quotas = quotas(&[json!({"calls": 4, "per": "day"})]);
        let now = today();
        let books = [
            QuotaBook::open(folder.path()),
            QuotaBook::open(folder.path()),
        ];
        for book in [&books[0], &books[1], &books[0]] {
            assert!(book.take_at(&quotas, &CALL, now).is_ok());
            book.write();
        }
        assert!(books[0].take_at(&quotas, &CALL, now).is_ok());
        assert!(books[0].take_at(&quotas, &CALL, now).is_err());
    }

    #[tokio::test]
    async fn a_call_that_one_quota_refuses_counts_in_none() {
        let folder = tempfile::tempdir().unwrap();
        let book = QuotaBook::open(folder.path());
        let two = quotas(&[
            json!({"calls": 2, "per": "day"}),
            json!({"calls": 1, "per": "day", "tool": "create_*"}),
        ]);
        let other = QuotaSubject {
            tool: "list_issues",
            ..CALL
        };
        let now = today();
        assert!(book.take_at(&two, &CALL, now).is_ok());
        let error = book.take_at(&two, &CALL, now).unwrap_err().to_string();
        assert!(error.contains("1 calls a day (quota 2"), "{error}");
        assert!(book.take_at(&two, &other, now).is_ok());
        assert!(book.take_at(&two, &other, now).is_err());
    }

    #[tokio::test]
    async fn tokens_are_charged_when_they_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let book = QuotaBook::open(folder.path());
        let quotas = quotas(&[json!({"tokens": 100, "per": "hour"})]);
        let now = today();
        let charge = book.take_at(&quotas, &CALL, now).unwrap().unwrap();
        charge.add(99);
        let charge = book.take_at(&quotas, &CALL, now).unwrap().unwrap();
        charge.add(1);
        assert!(book.take_at(&quotas, &CALL, now).is_err());
    }

    #[tokio::test]
    async fn the_same_call_is_stopped_and_another_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let book = QuotaBook::open(folder.path());
        let quotas = quotas(&[json!({"repeats": 2, "per": "hour"})]);
        let now = today();
        let other = QuotaSubject {
            arguments: "{\"a\":1}",
            ..CALL
        };
        let session = QuotaSubject {
            session: "2",
            ..CALL
        };
        for call in [&CALL, &CALL, &other, &session] {
            assert!(book.take_at(&quotas, call, now).is_ok());
        }
        let error = book.take_at(&quotas, &CALL, now).unwrap_err().to_string();
        assert!(error.contains("the same call"), "{error}");
    }
}
