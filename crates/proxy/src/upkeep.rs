//! What a proxy that serves does besides answering: it gets to know servers, keeps up with their
//! lists, and writes down what was counted. The same in a daemon and in a single process.

use std::{sync::Arc, time::Duration};

use tokio::{sync::Notify, task::JoinSet, time::timeout};

use crate::{
    config::Config,
    front::{self, Front},
    live, survey,
};

/// How often what was counted is written down.
const FLUSH_EVERY: Duration = Duration::from_secs(30);

/// The whole shutdown: servers that do not go by then were killed.
const STOP_WAIT: Duration = Duration::from_millis(1_800);

/// The tasks of a front that serves; they end with it.
#[derive(Debug)]
pub(crate) struct Upkeep {
    front: Arc<Front>,
    tasks: JoinSet<()>,
}

impl Upkeep {
    /// `load` reads the configuration anew; `nudge` asks for it although no file changed.
    pub(crate) fn begin(front: &Arc<Front>, load: live::Load, nudge: Arc<Notify>) -> Self {
        front.fleet.start_eager();
        let mut tasks = JoinSet::new();
        let unknown = survey::unknown(&front.registry.catalog());
        tasks.spawn(survey::get_to_know(Arc::clone(front), unknown));
        tasks.spawn(survey::keep_fresh(Arc::clone(front)));
        tasks.spawn(survey::keep_meaning(Arc::clone(front)));
        tasks.spawn(flush(Arc::clone(front)));
        let results = front.results.clone();
        tasks.spawn(async move { results.sweep().await });
        tasks.spawn(live::follow(Arc::clone(front), load, nudge));
        Self {
            front: Arc::clone(front),
            tasks,
        }
    }

    /// Ends the tasks, then every server.
    pub(crate) async fn end(mut self) {
        self.tasks.shutdown().await;
        if timeout(STOP_WAIT, self.front.stop()).await.is_err() {
            tracing::warn!("some servers did not end in time and were killed");
        }
    }
}

/// Ends what a predecessor that crashed left behind. Nobody waits for it.
pub(crate) fn sweep(config: &Config) {
    let marker = front::marker(config);
    tokio::task::spawn_blocking(move || {
        let ended = fleet::sweep(&marker);
        if ended > 0 {
            tracing::warn!(ended, "ended servers that a crashed proxy had left");
        }
    });
}

async fn flush(front: Arc<Front>) {
    loop {
        tokio::time::sleep(FLUSH_EVERY).await;
        let front = Arc::clone(&front);
        let _ = tokio::task::spawn_blocking(move || front.flush()).await;
    }
}
