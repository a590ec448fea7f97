//! Results that were too long for a client, kept whole on disk.
//!
//! A result is written in the background; a reader meanwhile waits for that, also in another process. It
//! belongs to the client that called, and outlives a restart.

mod error;
mod folder;
mod form;
mod handle;
mod kept;
mod shared;

use std::{
    collections::{HashMap, VecDeque},
    path::Path,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use files::Lock;
use folder::Folder;
use jsonrpc::Json;
use parking_lot::{Mutex, MutexGuard};
use tokio::{
    sync::{Semaphore, SemaphorePermit, watch},
    time::timeout,
};
use tokio_util::task::TaskTracker;
use tool::ClientId;
use tracing::debug;

use crate::settings::ResultSettings;

pub use error::HandleError;
pub(crate) use form::{Draft, Parts, TextHead};
pub use handle::Handle;
pub use kept::KeptResult;
pub use shared::{Fetching, SharedResults};

/// The folder of kept results: one private file each, named after its handle. They are kept for
/// [`ResultSettings::keep_hours`] and within [`ResultSettings::keep_mib`]; the oldest are removed first.
#[derive(Debug, Clone)]
pub struct ResultStore(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    folder: Folder,
    writers: Mutex<Writers>,
    /// Limits concurrent writers: each holds a whole result in memory.
    writing_turns: Semaphore,
    /// Limits processes that read a result at one time.
    readings: Semaphore,
    /// Limits sweeps after a write to one at a time: each has the names and dates of all files in memory.
    sweep_turn: Semaphore,
    tasks: TaskTracker,
    /// Set if machines share their results.
    shared: OnceLock<Arc<dyn SharedResults>>,
}

#[derive(Debug, Default)]
struct Writers {
    /// Results that are being written, or could not be written.
    states: HashMap<Handle, watch::Receiver<Writing>>,
    /// Results that other processes are told to wait for.
    announced: HashMap<Handle, Lock>,
    /// Results that could not be written, the oldest first.
    failed: VecDeque<Handle>,
}

#[derive(Debug, Clone)]
enum Writing {
    UnderWay,
    Done,
    Failed(String),
}

const BYTES_PER_MIB: u64 = 1024 * 1024;

const WRITERS_MAX: usize = 4;

/// Each may take a processor and gigabytes of memory while it runs.
const READINGS_MAX: usize = 2;

/// The time that an answer waits for the write of its result. A full disk fails at once; a slow one
/// delays no answer.
const WRITE_WAIT: Duration = Duration::from_millis(30);

/// The interval between sweeps; an expired file may remain for so long.
const SWEEP_EVERY: Duration = Duration::from_mins(10);

/// The number of remembered failures, so that a reader gets the reason.
const FAILURES_MAX: usize = 1_000;

impl ResultStore {
    /// The store in `results` below this folder, which is made when the first result is kept.
    pub fn new(state_dir: &Path, settings: &ResultSettings) -> Self {
        Self(Arc::new(Inner {
            folder: Folder::new(
                state_dir.join("results"),
                Duration::from_secs(settings.keep_hours.saturating_mul(3_600)),
                settings.keep_mib.saturating_mul(BYTES_PER_MIB),
            ),
            writers: Mutex::default(),
            writing_turns: Semaphore::new(WRITERS_MAX),
            readings: Semaphore::new(READINGS_MAX),
            sweep_turn: Semaphore::new(1),
            tasks: TaskTracker::new(),
            shared: OnceLock::new(),
        }))
    }

    /// Shares results with other machines from now on.
    pub fn share_with(&self, shared: Arc<dyn SharedResults>) {
        let _ = self.0.shared.set(shared);
    }

    /// Reads the file of a result of this machine, for another one.
    pub async fn read_file(&self, handle: &str) -> Option<Bytes> {
        let handle = Handle::parse(handle)?;
        self.settle(&handle).await.ok()?;
        self.in_folder(move |folder| folder.read(&handle)).await?
    }

    /// Works in the folder, on a thread that may block. Returns `None` if the work ended early.
    async fn in_folder<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Folder) -> T + Send + 'static,
    ) -> Option<T> {
        let inner = Arc::clone(&self.0);
        let working = tokio::task::spawn_blocking(move || work(&inner.folder));
        working.await.ok()
    }

    /// Starts to write a result and returns its handle, or the reason why it cannot be kept if that
    /// is known at once. Afterwards makes room for the next result if there is none.
    pub(crate) async fn keep(&self, draft: Draft) -> Result<Handle, String> {
        let handle = Handle::random().map_err(|error| error.to_string())?;
        let (done, mut written) = watch::channel(Writing::UnderWay);
        self.writers()
            .states
            .insert(handle.clone(), written.clone());
        let (store, name) = (self.clone(), handle.clone());
        self.0.tasks.spawn(async move {
            let ended = store.write(&name, draft).await;
            let is_written = matches!(ended, Writing::Done);
            let _ = done.send(ended);
            if is_written && let Some(shared) = store.0.shared.get() {
                let name = name.to_string();
                if let Some(content) = store.read_file(&name).await {
                    shared.share(&name, content);
                }
            }
            store.forget(&name).await;
            // While a sweep runs, the next is due after each write.
            if let Ok(_turn) = store.0.sweep_turn.try_acquire()
                && store.0.folder.is_sweep_due()
            {
                store.sweep().await;
            }
        });
        let settled = written.wait_for(|state| !matches!(state, Writing::UnderWay));
        let ended = match timeout(WRITE_WAIT, settled).await {
            Ok(Ok(state)) => state.clone(),
            _ => Writing::UnderWay,
        };
        match ended {
            Writing::Failed(why) => return Err(why),
            Writing::Done => {}
            Writing::UnderWay => self.announce(&handle).await,
        }
        Ok(handle)
    }

    /// Tells other processes that a result is being written. Without that, they do not find it until it is.
    async fn announce(&self, handle: &Handle) {
        let name = handle.clone();
        let announcing = self.in_folder(move |folder| folder.announce(&name));
        let Some(Ok(lock)) = announcing.await else {
            return;
        };
        {
            let mut writers = self.writers();
            if writers.is_under_way(handle) {
                writers.announced.insert(handle.clone(), lock);
                return;
            }
        }
        self.end_announcement(handle, lock).await;
    }

    async fn end_announcement(&self, handle: &Handle, lock: Lock) {
        let name = handle.clone();
        self.in_folder(move |folder| folder.end_announcement(&name, lock))
            .await;
    }

    /// Waits for the writer of a result in this process, if there is one. The error is for the model.
    async fn settle(&self, handle: &Handle) -> Result<(), String> {
        let writing = self.writers().states.get(handle).cloned();
        let Some(mut writing) = writing else {
            return Ok(());
        };
        let settled = writing.wait_for(|state| !matches!(state, Writing::UnderWay));
        match settled.await.as_deref() {
            Ok(Writing::Failed(why)) => Err(why.clone()),
            _ => Ok(()),
        }
    }

    /// Keeps a result as it is, for a reader that needs all of it.
    pub async fn keep_whole(
        &self,
        result: &Json,
        owner: Option<ClientId>,
    ) -> Result<Handle, String> {
        let draft = Draft {
            owner,
            max_tokens: 0,
            texts: Vec::new(),
            frame: vec![result.as_str().to_owned()],
            parts: Parts::Cut(Vec::new()),
            items: 0,
        };
        self.keep(draft).await
    }

    /// Writes when there is a place for one more writer.
    async fn write(&self, handle: &Handle, draft: Draft) -> Writing {
        let permit = self.0.writing_turns.acquire().await;
        let handle = handle.clone();
        let writing = self.in_folder(move |folder| folder.write(&handle, &draft));
        let written = writing.await;
        drop(permit);
        match written {
            Some(Ok(())) => Writing::Done,
            Some(Err(error)) => {
                debug!(%error, "a result was not kept");
                // The model gets the reason, but not the path of our files.
                Writing::Failed(error.kind().to_string())
            }
            None => Writing::Failed("the writer ended early".to_owned()),
        }
    }

    /// Opens the result under a handle for this client; a person may open every result. Waits for
    /// its writer, and reads the disk on a thread if that may block.
    pub async fn open(
        &self,
        handle: &str,
        client: Option<&ClientId>,
    ) -> Result<KeptResult, HandleError> {
        let handle = Handle::parse(handle).ok_or(HandleError::Gone)?;
        let settled = self.settle(&handle).await;
        settled.map_err(HandleError::NotWritten)?;
        let opened = self.open_file(&handle, client).await;
        if matches!(opened, Err(HandleError::Gone)) && self.fetch(&handle).await {
            return self.open_file(&handle, client).await;
        }
        opened
    }

    async fn open_file(
        &self,
        handle: &Handle,
        client: Option<&ClientId>,
    ) -> Result<KeptResult, HandleError> {
        let (handle, client) = (handle.clone(), client.cloned());
        let opening = self.in_folder(move |folder| folder.open(&handle, client.as_ref()));
        opening.await.unwrap_or(Err(HandleError::Gone))
    }

    /// Copies a result of another machine. Returns false if there is none.
    async fn fetch(&self, handle: &Handle) -> bool {
        let Some(shared) = self.0.shared.get() else {
            return false;
        };
        let Some(content) = shared.fetch(&handle.to_string()).await else {
            return false;
        };
        let handle = handle.clone();
        let copying = self.in_folder(move |folder| folder.copy(&handle, &content));
        matches!(copying.await, Some(Ok(())))
    }

    /// Waits until one more process may read on in a result, until the permit is dropped.
    pub(crate) async fn reading_turn(&self) -> SemaphorePermit<'_> {
        let turn = self.0.readings.acquire().await;
        turn.expect("nobody closes the semaphore")
    }

    /// Removes expired results, then the oldest beyond the size limit; the newest is kept whatever
    /// its size.
    pub async fn sweep(&self) {
        self.in_folder(Folder::sweep).await;
    }

    /// Sweeps at once and then periodically, as long as it is polled, so that the last results are
    /// also removed in time when no more are written.
    pub async fn keep_swept(self) {
        loop {
            self.sweep().await;
            tokio::time::sleep(SWEEP_EVERY).await;
        }
    }

    /// The number of results kept by all processes, and their bytes. Reads the folder, and so blocks
    /// for a moment.
    pub fn measure(&self) -> (u64, u64) {
        self.0.folder.measure()
    }

    /// Waits for all writers.
    pub async fn finish(&self) {
        self.0.tasks.close();
        self.0.tasks.wait().await;
        self.0.tasks.reopen();
    }

    /// Removes the state of a writer. A written result is on the disk from now on; a failure is
    /// remembered until [`FAILURES_MAX`] others failed.
    async fn forget(&self, handle: &Handle) {
        let announced = self.writers().forget(handle);
        if let Some(lock) = announced {
            self.end_announcement(handle, lock).await;
        }
    }

    fn writers(&self) -> MutexGuard<'_, Writers> {
        self.0.writers.lock()
    }
}

impl Writers {
    fn is_under_way(&self, handle: &Handle) -> bool {
        let state = self.states.get(handle);
        state.is_some_and(|state| matches!(&*state.borrow(), Writing::UnderWay))
    }

    /// Returns the announcement, which is to be ended.
    fn forget(&mut self, handle: &Handle) -> Option<Lock> {
        let state = self.states.get(handle);
        let has_failed = state.is_some_and(|state| matches!(&*state.borrow(), Writing::Failed(_)));
        if has_failed {
            self.failed.push_back(handle.clone());
            if self.failed.len() > FAILURES_MAX
                && let Some(oldest) = self.failed.pop_front()
            {
                self.states.remove(&oldest);
            }
        } else {
            self.states.remove(handle);
        }
        self.announced.remove(handle)
    }
}

#[cfg(test)]
mod tests;
