//! The thread that writes. A call that hands over a record never waits: where the thread does not
//! keep up, a record is lost, and how many were stands in the log.

use std::{
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread::{self, Thread},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tracing::warn;

use crate::{
    audit::{AuditLog, Hide},
    record::{CallRecord, Event},
    stats::Stats,
    totals::Totals,
};

/// Records that wait to be written: some seconds of the busiest use.
const QUEUE_MAX: usize = 16_384;

/// So long a record waits for others, to be written together with them: the thread is woken once for
/// all, not by each call. A process that is killed loses no more.
const GATHER_WAIT: Duration = Duration::from_millis(100);

/// Figures are written this often; a process that is killed loses no more of them.
const STATS_EVERY: Duration = Duration::from_secs(10);

/// A disk that does not answer holds up the end of the program no longer.
const FLUSH_MAX: Duration = Duration::from_secs(5);

/// What is kept, and where.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The folder that `audit` and `stats` lie in.
    pub folder: PathBuf,
    /// The room of the audit log; 0: there is none.
    pub audit_bytes_max: u64,
    /// Takes the secrets of the configuration out of arguments.
    pub hide: Hide,
}

/// Takes records, and has them written by a thread that starts with the first of them.
#[derive(Debug)]
pub struct Recorder {
    folder: PathBuf,
    hide: Hide,
    shared: Arc<Shared>,
    writer: OnceLock<Option<Handle>>,
}

/// The way to the thread.
#[derive(Debug)]
struct Handle {
    sender: SyncSender<Message>,
    thread: Thread,
}

#[derive(Debug)]
struct Shared {
    /// Since the log said so last.
    lost: AtomicU64,
    /// Since we began, and counted nowhere.
    uncounted: AtomicU64,
    totals: Mutex<Totals>,
    audit_bytes_max: AtomicU64,
}

#[derive(Debug)]
enum Message {
    Event(Event),
    /// Everything before it is to be on disk; answered then.
    Flush(SyncSender<()>),
}

impl Recorder {
    /// Opens nothing yet.
    pub fn new(settings: Settings) -> Self {
        Self {
            folder: settings.folder,
            hide: settings.hide,
            shared: Arc::new(Shared {
                lost: AtomicU64::new(0),
                uncounted: AtomicU64::new(0),
                totals: Mutex::default(),
                audit_bytes_max: AtomicU64::new(settings.audit_bytes_max),
            }),
            writer: OnceLock::new(),
        }
    }

    /// The audit log gets other room from the next record on; 0: it ends.
    pub fn set_audit_bytes_max(&self, bytes: u64) {
        self.shared.audit_bytes_max.store(bytes, Ordering::Relaxed);
    }

    /// Hands a record over. Never blocks.
    pub fn record(&self, event: Event) {
        let writer = self.writer.get_or_init(|| self.start());
        let sent = writer
            .as_ref()
            .map(|it| it.sender.try_send(Message::Event(event)));
        if !matches!(sent, Some(Ok(()))) {
            self.shared.lost.fetch_add(1, Ordering::Relaxed);
            self.shared.uncounted.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What was counted since we began. A record is counted a tenth of a second after it came.
    pub fn totals(&self) -> Totals {
        let mut totals = self.shared.totals.lock().clone();
        totals.lost = self.shared.uncounted.load(Ordering::Relaxed);
        totals
    }

    /// Waits until what was handed over is on disk, for five seconds at most. Blocks.
    pub fn flush(&self) {
        let Some(Some(writer)) = self.writer.get() else {
            return;
        };
        let (done, is_done) = sync_channel(1);
        if writer.sender.send(Message::Flush(done)).is_ok() {
            writer.thread.unpark();
            let _ = is_done.recv_timeout(FLUSH_MAX);
        }
    }

    /// None where no thread can be had: then every record is lost, and counted.
    fn start(&self) -> Option<Handle> {
        let (sender, receiver) = sync_channel(QUEUE_MAX);
        let writer = Writer {
            audit: AuditLog::new(self.folder.join("audit"), self.hide.clone()),
            stats: Stats::new(self.folder.join("stats")),
            shared: Arc::clone(&self.shared),
            is_failing: false,
        };
        let thread = thread::Builder::new().name("telemetry".to_owned());
        let started = thread.spawn(move || writer.run(&receiver));
        started
            .inspect_err(|error| warn!(%error, "calls are not written down"))
            .ok()
            .map(|it| Handle {
                sender,
                thread: it.thread().clone(),
            })
    }
}

/// The thread's own.
struct Writer {
    audit: AuditLog,
    stats: Stats,
    shared: Arc<Shared>,
    /// The last write failed: said once.
    is_failing: bool,
}

impl Writer {
    /// Runs until nobody can hand over anything any more.
    fn run(mut self, receiver: &Receiver<Message>) {
        let mut written = Instant::now();
        loop {
            let first = receiver.recv_timeout(STATS_EVERY);
            let is_over = matches!(first, Err(RecvTimeoutError::Disconnected));
            if let Ok(Message::Event(_)) = first {
                thread::park_timeout(GATHER_WAIT);
            }
            let rest = receiver.try_iter().take(QUEUE_MAX);
            let (mut calls, mut waiting) = (Vec::new(), Vec::new());
            let mut totals = self.shared.totals.lock();
            for message in first.into_iter().chain(rest) {
                match message {
                    Message::Flush(done) => waiting.push(done),
                    Message::Event(event) => {
                        self.stats.count(&event);
                        totals.count(&event);
                        if let Event::Call(call) = event {
                            calls.push(call);
                        }
                    }
                }
            }
            drop(totals);
            self.write_audit(&calls);
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

    fn write_audit(&mut self, calls: &[Box<CallRecord>]) {
        let bytes_max = self.shared.audit_bytes_max.load(Ordering::Relaxed);
        if bytes_max == 0 || calls.is_empty() {
            return;
        }
        let lost = self.shared.lost.swap(0, Ordering::Relaxed);
        let result = self.audit.append(calls, lost, bytes_max);
        if result.is_err() {
            let calls = u64::try_from(calls.len()).unwrap_or(u64::MAX);
            self.shared.lost.fetch_add(lost + calls, Ordering::Relaxed);
        }
        self.note(result);
    }

    fn note(&mut self, result: std::io::Result<()>) {
        let failed = result.is_err();
        if let Err(error) = result
            && !self.is_failing
        {
            warn!(%error, "calls are not written down");
        }
        self.is_failing = failed;
    }
}
