//! The tasks of a proxy that serves, besides answering: it gets to know servers, keeps up with
//! their lists, and writes down what was counted. The same in a daemon and in a single process.

use std::{path::PathBuf, sync::Arc, time::Duration};

use tokio::{
    task::JoinSet,
    time::{error::Elapsed, sleep, timeout},
};

use crate::{gateway::Gateway, state_dir::marker, survey};

/// The time after the start in which the process does nothing but serve: the first messages of its client
/// are answered before files are watched and the leftovers of earlier processes are searched for.
pub const FIRST_ANSWERS: Duration = Duration::from_millis(10);

/// The interval at which counts are written to the disk.
const FLUSH_EVERY: Duration = Duration::from_secs(30);

/// The wait of one such write for a lock of another process; what was counted stays for the next.
const FLUSH_WAIT: Duration = Duration::from_secs(5);

/// The idle time after which the encoder is unloaded: it takes 12 MB, and some 10 ms to load.
const ENCODER_IDLE: Duration = Duration::from_mins(5);

/// The whole shutdown of a process that its client waits for: clients kill one that is not gone 2 s
/// after they closed its input. Servers that do not go by then were killed.
const STOP_WAIT: Duration = Duration::from_millis(1_800);

/// The whole shutdown of a daemon: an orderly end of its servers, which takes 6.2 s at most, and the
/// last records.
const END_WAIT: Duration = Duration::from_secs(7);

/// The tasks of a gateway that serves; they end with it.
#[derive(Debug)]
pub struct Upkeep {
    gateway: Arc<Gateway>,
    tasks: JoinSet<()>,
}

impl Upkeep {
    /// Starts the tasks, and the servers that are to run from the beginning.
    pub fn begin(gateway: &Arc<Gateway>) -> Self {
        gateway.servers.start_eager();
        gateway.catalog.due.damaged.lock().is_mended = true;
        let mut tasks = JoinSet::new();
        let unknown = survey::unknown(&gateway.catalog.registry.catalog());
        tasks.spawn(survey::get_to_know(Arc::clone(&gateway.catalog), unknown));
        tasks.spawn(survey::know_completed(Arc::clone(&gateway.catalog)));
        tasks.spawn(survey::keep_fresh(Arc::clone(&gateway.catalog)));
        tasks.spawn(survey::keep_embedding(Arc::clone(&gateway.catalog)));
        tasks.spawn(flush(Arc::clone(gateway)));
        let mut upkeep = Self {
            gateway: Arc::clone(gateway),
            tasks,
        };
        upkeep.add_later(gateway.results.clone().keep_swept());
        upkeep
    }

    /// One more task that ends with the others.
    pub fn add(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// One more task that ends with the others, and that no first message waits for.
    pub fn add_later(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(async move {
            sleep(FIRST_ANSWERS).await;
            task.await;
        });
    }

    /// Ends the tasks, then every server, before a client loses its patience.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
        tell_late(&timeout(STOP_WAIT, self.gateway.stop()).await);
    }

    /// The same for a daemon, whose servers may write down what they have.
    pub async fn end(mut self) {
        self.tasks.shutdown().await;
        tell_late(&timeout(END_WAIT, self.gateway.end()).await);
    }
}

fn tell_late(ended: &Result<(), Elapsed>) {
    if ended.is_err() {
        tracing::warn!(
            "not everything ended in time: servers were killed, last records may be lost"
        );
    }
}

/// Ends processes that a predecessor left when it crashed.
pub async fn sweep(state_dir: PathBuf) {
    let sweeping = tokio::task::spawn_blocking(move || processes::sweep(&marker(&state_dir)));
    let ended = sweeping.await.unwrap_or_default();
    if ended > 0 {
        tracing::warn!(ended, "ended servers that a crashed proxy had left");
    }
}

async fn flush(gateway: Arc<Gateway>) {
    loop {
        sleep(FLUSH_EVERY).await;
        // Another process may have committed.
        gateway.catalog.lists_changed.send_replace(());
        let gateway = Arc::clone(&gateway);
        let _ = tokio::task::spawn_blocking(move || {
            gateway.catalog.flush(FLUSH_WAIT);
            registry::let_encoder_go(ENCODER_IDLE);
        })
        .await;
    }
}
