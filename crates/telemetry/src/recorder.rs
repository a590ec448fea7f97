//! The thread that writes records. A call that queues a record never waits: if the thread does not keep
//! up, records are lost, and their number is written to the log.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel},
    },
    thread::{self, Thread},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tracing::warn;

use crate::{
    audit::{AuditLog, Hide},
    outcome::CallCount,
    record::{AuditHead, Event},
    stats::Stats,
    totals::Totals,
};

/// The number of records that may wait: some seconds of the heaviest use. The channel itself has no limit,
/// since one with a limit allocates all of its places at once: 1.2 MB.
const QUEUE_MAX: usize = 16_384;

/// The time that a record waits for others, so that they are written together and the thread is not
/// woken for each call. A process that is killed loses no more than this.
const GATHER_WAIT: Duration = Duration::from_millis(100);

/// The interval at which statistics are written; a process that is killed loses no more than this.
const STATS_EVERY: Duration = Duration::from_secs(10);

/// The longest time that a reader waits for records that are not counted yet, while the thread writes
/// earlier ones to a slow disk.
const COUNT_MAX: Duration = Duration::from_secs(1);

/// The longest time that the end of the program waits for the disk.
const FLUSH_MAX: Duration = Duration::from_secs(5);

/// The settings of the recorder.
#[derive(Debug, Clone)]
pub struct RecorderSettings {
    /// The folder that contains `audit` and `stats`.
    pub folder: PathBuf,
    /// The size limit of the audit log in bytes; 0: there is no log.
    pub audit_bytes_max: u64,
    /// False if no statistics are written.
    pub keeps_stats: bool,
    /// Removes the secrets of the configuration from arguments.
    pub hide: Hide,
}

/// Queues records, and writes them in a thread that starts with the first record.
#[derive(Debug)]
pub struct Recorder {
    folder: PathBuf,
    hide: Hide,
    shared: Arc<RecorderState>,
    writer: OnceLock<Option<Handle>>,
}

/// The queue of the thread, and the thread itself.
#[derive(Debug)]
struct Handle {
    sender: Sender<Message>,
    thread: Thread,
}

#[derive(Debug)]
struct RecorderState {
    /// The number of records that wait for the thread.
    waiting: AtomicUsize,
    /// The number of lost records that are not yet in the log.
    lost: AtomicU64,
    /// The number of lost records since the program started; they are in no statistics.
    uncounted: AtomicU64,
    totals: Mutex<Totals>,
    /// The newest call in the audit log, since the program started.
    head: Mutex<Option<AuditHead>>,
    audit_bytes_max: AtomicU64,
    keeps_stats: AtomicBool,
}

#[derive(Debug)]
enum Message {
    Event(Event),
    /// A request to count everything before it; answered when that is done.
    Count(SyncSender<()>),
    /// A request to write everything before it to disk; answered when that is done.
    Flush(SyncSender<()>),
}

impl Recorder {
    /// Makes a recorder. Opens no file yet.
    pub fn new(settings: RecorderSettings) -> Self {
        Self {
            folder: settings.folder,
            hide: settings.hide,
            shared: Arc::new(RecorderState {
                waiting: AtomicUsize::new(0),
                lost: AtomicU64::new(0),
                uncounted: AtomicU64::new(0),
                totals: Mutex::default(),
                head: Mutex::default(),
                audit_bytes_max: AtomicU64::new(settings.audit_bytes_max),
                keeps_stats: AtomicBool::new(settings.keeps_stats),
            }),
            writer: OnceLock::new(),
        }
    }

    /// Changes the size limit of the audit log from the next record on; 0: no more is logged.
    pub fn set_audit_bytes_max(&self, bytes: u64) {
        self.shared.audit_bytes_max.store(bytes, Ordering::Relaxed);
    }

    /// Turns statistics on or off from the next record on. Metrics since the start are not affected.
    pub fn set_keeps_stats(&self, keeps: bool) {
        self.shared.keeps_stats.store(keeps, Ordering::Relaxed);
    }

    /// Queues a record. Never blocks.
    pub fn record(&self, event: Event) {
        let writer = self.writer.get_or_init(|| self.start());
        let is_queued = writer.as_ref().is_some_and(|writer| {
            let waiting = self.shared.waiting.fetch_add(1, Ordering::Relaxed);
            let is_queued =
                waiting < QUEUE_MAX && writer.sender.send(Message::Event(event)).is_ok();
            if !is_queued {
                self.shared.waiting.fetch_sub(1, Ordering::Relaxed);
            }
            is_queued
        });
        if !is_queued {
            self.shared.lost.fetch_add(1, Ordering::Relaxed);
            self.shared.uncounted.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the totals since the program started. A record is counted a tenth of a second after it
    /// was queued.
    pub fn totals(&self) -> Totals {
        let mut totals = self.shared.totals.lock().clone();
        totals.lost = self.shared.uncounted.load(Ordering::Relaxed);
        totals
    }

    /// Returns the calls since the program started, by server; the name is empty for calls of names that
    /// no server has. A call is counted a tenth of a second after its record was queued;
    /// [`Recorder::settle`] waits for that.
    pub fn count_by_server(&self) -> BTreeMap<String, CallCount> {
        self.shared.totals.lock().count_by_server()
    }

    /// Returns all calls since the program started, in the same way.
    pub fn count_calls(&self) -> CallCount {
        let mut all = CallCount::default();
        let by_server = self.count_by_server().into_values();
        by_server.for_each(|count| all += count);
        all
    }

    /// Returns the newest call in the audit log, if one was written since the program started.
    pub fn head(&self) -> Option<AuditHead> {
        self.shared.head.lock().clone()
    }

    /// Waits until the queued records are counted, for a second at most. Blocks.
    pub fn settle(&self) {
        self.wait_for(Message::Count, COUNT_MAX);
    }

    /// Waits until the queued records are on disk, for five seconds at most. Blocks.
    pub fn flush(&self) {
        self.wait_for(Message::Flush, FLUSH_MAX);
    }

    fn wait_for(&self, request: impl FnOnce(SyncSender<()>) -> Message, longest: Duration) {
        let Some(Some(writer)) = self.writer.get() else {
            return;
        };
        let (done, is_done) = sync_channel(1);
        if writer.sender.send(request(done)).is_ok() {
            writer.thread.unpark();
            let _ = is_done.recv_timeout(longest);
        }
    }

    /// Starts the thread. Returns `None` if that fails: then every record is lost, and counted as lost.
    fn start(&self) -> Option<Handle> {
        #[expect(
            clippy::disallowed_methods,
            reason = "`record` counts what waits, and a thread of ours receives"
        )]
        let (sender, receiver) = channel();
        let writer = Writer {
            audit: AuditLog::new(self.folder.join("audit"), self.hide.clone()),
            stats: Stats::new(self.folder.join("stats")),
            shared: Arc::clone(&self.shared),
            is_failing: false,
        };
        let thread = thread::Builder::new().name("telemetry".to_owned());
        let started = thread.spawn(move || writer.run(&receiver));
        started
            .inspect_err(|error| warn!(%error, "the records of calls are not written"))
            .ok()
            .map(|it| Handle {
                sender,
                thread: it.thread().clone(),
            })
    }
}

struct Writer {
    audit: AuditLog,
    stats: Stats,
    shared: Arc<RecorderState>,
    /// True if the last write failed; a failure is logged once.
    is_failing: bool,
}

impl Writer {
    /// Runs until all senders are dropped.
    fn run(mut self, receiver: &Receiver<Message>) {
        let mut written = Instant::now();
        loop {
            let first = receiver.recv_timeout(STATS_EVERY);
            let is_over = matches!(first, Err(RecvTimeoutError::Disconnected));
            if let Ok(Message::Event(_)) = first {
                thread::park_timeout(GATHER_WAIT);
            }
            let rest = receiver.try_iter().take(QUEUE_MAX);
            let (mut logged, mut counting, mut waiting) = (Vec::new(), Vec::new(), Vec::new());
            let mut totals = self.shared.totals.lock();
            for message in first.into_iter().chain(rest) {
                match message {
                    Message::Count(done) => counting.push(done),
                    Message::Flush(done) => waiting.push(done),
                    Message::Event(event) => {
                        self.shared.waiting.fetch_sub(1, Ordering::Relaxed);
                        if self.shared.keeps_stats.load(Ordering::Relaxed) {
                            self.stats.count(&event);
                        }
                        totals.count(&event);
                        if event.is_logged() {
                            logged.push(event);
                        }
                    }
                }
            }
            drop(totals);
            for done in counting {
                let _ = done.try_send(());
            }
            self.write_audit(&logged);
            if is_over || !waiting.is_empty() || written.elapsed() >= STATS_EVERY {
                let result = self.stats.write();
                self.note(result);
                written = Instant::now();
            }
            for done in waiting {
                let _ = done.try_send(());
            }
            if is_over {
                return;
            }
        }
    }

    fn write_audit(&mut self, logged: &[Event]) {
        let bytes_max = self.shared.audit_bytes_max.load(Ordering::Relaxed);
        if bytes_max == 0 || logged.is_empty() {
            return;
        }
        let lost = self.shared.lost.swap(0, Ordering::Relaxed);
        let result = self.audit.append(logged, lost, bytes_max);
        match &result {
            Ok(Some(head)) => *self.shared.head.lock() = Some(head.clone()),
            Ok(None) => {}
            Err(_) => {
                let is_call = |event: &&Event| !matches!(event, Event::Head { .. });
                let calls = logged.iter().filter(is_call).count();
                let calls = u64::try_from(calls).unwrap_or(u64::MAX);
                self.shared.lost.fetch_add(lost + calls, Ordering::Relaxed);
            }
        }
        self.note(result.map(drop));
    }

    fn note(&mut self, result: std::io::Result<()>) {
        let failed = result.is_err();
        if let Err(error) = result
            && !self.is_failing
        {
            warn!(%error, "the records of calls are not written");
        }
        self.is_failing = failed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_finds_no_room_is_counted_as_lost() {
        let folder = tempfile::tempdir().unwrap();
        let recorder = Recorder::new(RecorderSettings {
            folder: folder.path().to_owned(),
            audit_bytes_max: 0,
            keeps_stats: true,
            hide: Hide::new(|text| Some(text.to_owned())),
        });
        let search = || Event::Search {
            at_ms: 0,
            words: String::new(),
            hits: 1,
        };
        let waiting = &recorder.shared.waiting;
        waiting.store(QUEUE_MAX, Ordering::Relaxed);
        recorder.record(search());
        assert_eq!(recorder.totals().lost, 1);
        assert_eq!(waiting.load(Ordering::Relaxed), QUEUE_MAX);

        waiting.store(0, Ordering::Relaxed);
        recorder.record(search());
        recorder.flush();
        assert_eq!(recorder.totals().lost, 1);
        assert_eq!(waiting.load(Ordering::Relaxed), 0);
    }
}
