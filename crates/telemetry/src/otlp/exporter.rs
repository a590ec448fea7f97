//! The queue of spans, and the task that sends them.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    sync::mpsc::{Receiver, Sender, channel},
    task::{JoinHandle, spawn_blocking},
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::otlp::{
    sending::{Collector, SendOutcome},
    span::Span,
    wire::{self, Attributes},
};

/// The capacity of the queue: the spans of a thousand calls, about two megabytes.
const QUEUE_MAX: usize = 2_048;

/// The most spans in one request.
const BATCH_MAX: usize = 512;

/// The time that a span waits for others, so that they are sent together.
const GATHER_WAIT: Duration = Duration::from_secs(1);

/// The pauses between two attempts, doubled after each failure.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// The longest time that the end of the program waits for a collector.
const FLUSH_MAX: Duration = Duration::from_secs(2);

/// Returns the collector. Its address and headers may refer to secrets, which are read when they are
/// needed. Called again after a pause if it fails.
pub type Prepare =
    Box<dyn Fn() -> BoxFuture<'static, Result<Collector, String>> + Send + Sync + 'static>;

/// Queues spans, and sends them in a task that starts with the first span.
pub struct Exporter {
    queue: Sender<Span>,
    shared: Arc<ExporterState>,
    task: Mutex<Task>,
}

/// The delivery of spans since the program started.
#[derive(Debug, Clone, Default)]
pub struct Delivery {
    /// The scheme, host and port of the collector, which hold no secret; none before the first span is sent.
    pub to: Option<String>,
    /// The number of spans that the collector accepted.
    pub sent: u64,
    /// The number of spans that were dropped: the queue was full, or the collector refused them.
    pub dropped: u64,
    /// The time of the last attempt.
    pub last: Option<SystemTime>,
    /// The error of that attempt; none if it succeeded.
    pub failure: Option<String>,
}

/// The state that the exporter and its task share.
#[derive(Default)]
struct ExporterState {
    delivery: Mutex<Delivery>,
    /// Cancelled when the exporter stops: everything is sent at once, and no request is repeated.
    stop: CancellationToken,
}

enum Task {
    /// No span has been recorded yet.
    Ready(Box<Worker>),
    Begun(JoinHandle<()>),
    Ended,
}

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exporter").finish_non_exhaustive()
    }
}

impl Exporter {
    /// Makes an exporter. Sends, resolves and starts nothing yet.
    pub fn new(prepare: Prepare) -> Self {
        let (queue, spans) = channel(QUEUE_MAX);
        let shared = Arc::<ExporterState>::default();
        let worker = Worker {
            spans,
            prepare,
            about: Arc::new(about()),
            collector: None,
            shared: Arc::clone(&shared),
        };
        Self {
            queue,
            shared,
            task: Mutex::new(Task::Ready(Box::new(worker))),
        }
    }

    /// Queues a span. Never blocks.
    pub(crate) fn record(&self, span: Span) {
        self.begin();
        if self.queue.try_send(span).is_err() {
            self.shared.drop_spans(1);
        }
    }

    /// Returns the delivery of spans so far.
    pub fn delivery(&self) -> Delivery {
        self.shared.delivery.lock().clone()
    }

    /// Sends the queued spans, for two seconds at most. Later spans are dropped.
    pub async fn finish(&self) {
        self.shared.stop.cancel();
        let task = std::mem::replace(&mut *self.task.lock(), Task::Ended);
        if let Task::Begun(mut task) = task
            && timeout(FLUSH_MAX, &mut task).await.is_err()
        {
            task.abort();
        }
    }

    /// Starts the task. Does nothing outside a runtime; the next span tries again.
    fn begin(&self) {
        let mut task = self.task.lock();
        if !matches!(*task, Task::Ready(_)) {
            return;
        }
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        if let Task::Ready(worker) = std::mem::replace(&mut *task, Task::Ended) {
            *task = Task::Begun(runtime.spawn(worker.run()));
        }
    }
}

/// Returns the attributes of the resource: this program, its version and this process.
fn about() -> Attributes {
    let mut random = [0; 16];
    // Without random numbers there are no spans.
    let _ = getrandom::fill(&mut random);
    vec![
        ("service.name", "proxy".into()),
        ("service.version", env!("CARGO_PKG_VERSION").into()),
        ("service.instance.id", hex::encode(random).as_str().into()),
        ("process.pid", u64::from(std::process::id()).into()),
    ]
}

struct Worker {
    spans: Receiver<Span>,
    prepare: Prepare,
    about: Arc<Attributes>,
    collector: Option<Collector>,
    shared: Arc<ExporterState>,
}

impl Worker {
    /// Runs until it is stopped, or until all senders are dropped.
    async fn run(mut self: Box<Self>) {
        let stop = self.shared.stop.clone();
        let mut batch = Vec::with_capacity(BATCH_MAX);
        while let Some(Some(first)) = stop.run_until_cancelled(self.spans.recv()).await {
            batch.push(first);
            self.gather(&mut batch).await;
            self.deliver(&mut batch).await;
        }
        self.spans.close();
        while self.spans.recv_many(&mut batch, BATCH_MAX).await > 0 {
            self.deliver(&mut batch).await;
        }
    }

    /// Waits for more spans, until the batch is full or the waiting time is over.
    async fn gather(&mut self, batch: &mut Vec<Span>) {
        let until = Instant::now() + GATHER_WAIT;
        while batch.len() < BATCH_MAX {
            let room = BATCH_MAX - batch.len();
            tokio::select! {
                received = self.spans.recv_many(batch, room) => {
                    if received == 0 {
                        return;
                    }
                }
                () = sleep_until(until) => return,
                () = self.shared.stop.cancelled() => return,
            }
        }
    }

    /// Sends a batch until it is accepted or refused; meanwhile the queue continues to accept spans.
    /// During shutdown it is tried once.
    async fn deliver(&mut self, batch: &mut Vec<Span>) {
        let spans = std::mem::take(batch);
        let count = spans.len() as u64;
        let about = Arc::clone(&self.about);
        // Serializing hundreds of spans takes a millisecond, which would delay messages.
        let written = spawn_blocking(move || Bytes::from(wire::write(&about, &spans)));
        let Ok(body) = written.await else {
            return self.shared.drop_spans(count);
        };
        let mut pause = PAUSE_MIN;
        loop {
            match self.send(body.clone()).await {
                SendOutcome::Taken { rejected } => {
                    let rejected = rejected.min(count);
                    self.shared.delivery.lock().sent += count - rejected;
                    self.shared.drop_spans(rejected);
                    return self.shared.note(None);
                }
                SendOutcome::Refused { why } => {
                    self.shared.drop_spans(count);
                    return self.shared.note(Some(why));
                }
                SendOutcome::Away { why, pause: asked } => {
                    self.shared.note(Some(why));
                    let waiting = sleep(pause.max(asked));
                    let stop = &self.shared.stop;
                    if stop.is_cancelled() || stop.run_until_cancelled(waiting).await.is_none() {
                        return self.shared.drop_spans(count);
                    }
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            }
        }
    }

    async fn send(&mut self, body: Bytes) -> SendOutcome {
        let collector = match self.collector.take() {
            Some(collector) => collector,
            None => match (self.prepare)().await {
                Ok(collector) => collector,
                Err(why) => {
                    let pause = PAUSE_MAX;
                    return SendOutcome::Away { why, pause };
                }
            },
        };
        self.shared.delivery.lock().to = Some(collector.origin());
        let outcome = collector.send(body).await;
        self.collector = Some(collector);
        outcome
    }
}

impl ExporterState {
    fn drop_spans(&self, count: u64) {
        self.delivery.lock().dropped += count;
    }

    /// Stores the result. A failure is logged once, until a request succeeds.
    fn note(&self, failure: Option<String>) {
        let mut delivery = self.delivery.lock();
        let was_failing = delivery.failure.is_some();
        delivery.last = Some(SystemTime::now());
        delivery.failure.clone_from(&failure);
        drop(delivery);
        match failure {
            Some(why) if !was_failing => {
                warn!(
                    why,
                    "the collector does not accept traces; traces are dropped when the queue is full"
                );
            }
            None if was_failing => info!("the collector accepts traces again"),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
