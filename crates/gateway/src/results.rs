//! Results that were too long for a client, kept whole on disk.
//!
//! A result is written in the background; whoever reads it meanwhile waits for that. It belongs
//! to the client that called, and outlives a restart.

mod form;
mod gone;
mod kept;

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use files::{UNFINISHED, Unfinished, own_folder};
use parking_lot::{Mutex, MutexGuard};
use tokio::{
    sync::{Semaphore, SemaphorePermit, watch},
    time::timeout,
};
use tokio_util::task::TaskTracker;
use tracing::debug;

pub use form::{Draft, TextHead};
pub use kept::Kept;

/// How much of a result is shown, and how long all of it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Of one result, where nothing else is said for its tool, server or client.
    pub max_tokens: u64,
    pub keep_hours: u64,
    pub keep_mib: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_tokens: 4_000,
            keep_hours: 24,
            keep_mib: 256,
        }
    }
}

/// Who calls, and so whose results these are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Caller {
    /// Whoever has the command line may read everything here anyway.
    #[default]
    Person,
    /// A client, by the name that tells it from others and that it has again after a restart.
    Client(Arc<str>),
}

/// The folder of kept results: one private file each, named after its handle. They are kept for
/// [`Settings::keep_hours`] and within [`Settings::keep_mib`]; the oldest go first.
#[derive(Debug, Clone)]
pub struct ResultStore(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    folder: PathBuf,
    keep_hours: u64,
    keep_bytes: u64,
    /// Results that are being written, or could not be, by handle.
    writing: Mutex<HashMap<String, watch::Receiver<Writing>>>,
    /// Writers at one time: each holds a whole result in memory.
    writers: Semaphore,
    /// Processes that read on in a result at one time.
    readings: Semaphore,
    tasks: TaskTracker,
}

#[derive(Debug, Clone)]
enum Writing {
    UnderWay,
    Done,
    Failed(String),
}

/// Why nothing can be read under a handle.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HandleError {
    /// It never was, is too old, had to make room, or belongs to another client.
    #[error("nothing is kept under it (any more)")]
    Gone { tool: Option<String> },
    #[error("what was kept under it is damaged: {why}")]
    Damaged { tool: Option<String>, why: String },
    #[error("it could not be kept: {0}")]
    NotWritten(String),
}

/// Random bytes in a handle: nobody guesses another one's.
const HANDLE_BYTES: usize = 8;

const BYTES_PER_MIB: u64 = 1024 * 1024;

const WRITERS_MAX: usize = 4;

/// Each may take a processor and gigabytes of memory while it runs.
const READINGS_MAX: usize = 2;

/// How long an answer waits to hear that its result was kept. A disk that is full says so at
/// once; one that is slow holds up nobody.
const WRITE_WAIT: Duration = Duration::from_millis(30);

/// Failures that are remembered, so that a reader hears why.
const FAILURES_MAX: usize = 1_000;

/// A file that was being written for longer than this was given up by a writer that died.
const WRITING_MAX: Duration = Duration::from_hours(1);

const GONE: &str = "gone";

impl ResultStore {
    pub fn new(state_dir: &Path, settings: &Settings) -> Self {
        Self(Arc::new(Inner {
            folder: state_dir.join("results"),
            keep_hours: settings.keep_hours,
            keep_bytes: settings.keep_mib.saturating_mul(BYTES_PER_MIB),
            writing: Mutex::default(),
            writers: Semaphore::new(WRITERS_MAX),
            readings: Semaphore::new(READINGS_MAX),
            tasks: TaskTracker::new(),
        }))
    }

    /// Begins to keep a result and gives its handle, or says why it cannot be kept where that is
    /// known at once. Room for the next one is made afterwards.
    pub async fn keep(&self, draft: Draft) -> Result<String, String> {
        let handle = new_handle().map_err(|error| error.to_string())?;
        let (done, mut written) = watch::channel(Writing::UnderWay);
        self.note(&handle, written.clone());
        let (store, name) = (self.clone(), handle.clone());
        self.0.tasks.spawn(async move {
            let permit = store.0.writers.acquire().await;
            let inner = Arc::clone(&store.0);
            let named = name.clone();
            let writing = tokio::task::spawn_blocking(move || inner.write(&named, &draft)).await;
            drop(permit);
            let _ = done.send(match writing {
                Ok(Ok(())) => Writing::Done,
                Ok(Err(error)) => {
                    debug!(%error, "a result was not kept");
                    // The model hears why. Where our files are is none of its business.
                    Writing::Failed(error.kind().to_string())
                }
                Err(_) => Writing::Failed("the writer ended early".to_owned()),
            });
            store.forget(&name);
            store.sweep().await;
        });
        let settled = written.wait_for(|state| !matches!(state, Writing::UnderWay));
        match timeout(WRITE_WAIT, settled).await {
            Ok(Ok(state)) => match &*state {
                Writing::Failed(why) => Err(why.clone()),
                _ => Ok(handle),
            },
            _ => Ok(handle),
        }
    }

    /// Opens what is kept under a handle for whom it was kept. Waits for its writer, and reads
    /// the disk on a thread where that may block.
    pub async fn open(&self, handle: &str, caller: &Caller) -> Result<Kept, HandleError> {
        let gone = HandleError::Gone { tool: None };
        let handle = handle.trim().to_ascii_lowercase();
        if !is_handle(&handle) {
            return Err(gone);
        }
        let writing = self.writing().get(&handle).cloned();
        if let Some(mut writing) = writing {
            let settled = writing.wait_for(|state| !matches!(state, Writing::UnderWay));
            if let Ok(state) = settled.await
                && let Writing::Failed(why) = &*state
            {
                return Err(HandleError::NotWritten(why.clone()));
            }
        }
        let (inner, caller) = (Arc::clone(&self.0), caller.clone());
        let opening = tokio::task::spawn_blocking(move || inner.open(&handle, &caller));
        opening.await.unwrap_or(Err(gone))
    }

    /// Waits until one more process may read on in a result, until the permit is dropped.
    pub(crate) async fn reading_turn(&self) -> SemaphorePermit<'_> {
        let turn = self.0.readings.acquire().await;
        turn.expect("nobody closes the semaphore")
    }

    /// What is too old goes, then the oldest beyond the room there is; the newest stays.
    pub async fn sweep(&self) {
        let inner = Arc::clone(&self.0);
        let _ = tokio::task::spawn_blocking(move || inner.sweep()).await;
    }

    /// Waits for what is being written.
    pub async fn finish(&self) {
        self.0.tasks.close();
        self.0.tasks.wait().await;
        self.0.tasks.reopen();
    }

    pub fn keep_hours(&self) -> u64 {
        self.0.keep_hours
    }

    fn note(&self, handle: &str, writing: watch::Receiver<Writing>) {
        self.writing().insert(handle.to_owned(), writing);
    }

    /// What was written is on the disk from now on; what was not is remembered for a while.
    fn forget(&self, handle: &str) {
        let mut writing = self.writing();
        let failed = writing
            .get(handle)
            .is_some_and(|state| matches!(&*state.borrow(), Writing::Failed(_)));
        if !failed || writing.len() > FAILURES_MAX {
            writing.remove(handle);
        }
    }

    fn writing(&self) -> MutexGuard<'_, HashMap<String, watch::Receiver<Writing>>> {
        self.0.writing.lock()
    }
}

impl Inner {
    fn write(&self, handle: &str, draft: &Draft) -> io::Result<()> {
        own_folder(&self.folder)?;
        let mut file = Unfinished::begin(&self.file(handle))?;
        form::write(&mut file, draft)?;
        file.finish()
    }

    fn open(&self, handle: &str, caller: &Caller) -> Result<Kept, HandleError> {
        let path = self.file(handle);
        let Ok(about) = fs::metadata(&path) else {
            let tool = gone::tool(&self.folder, handle, caller, self.oldest());
            return Err(HandleError::Gone { tool });
        };
        let age = about.modified().ok().and_then(|at| at.elapsed().ok());
        let kept = Kept::open(&path)?;
        if !kept.head.belongs_to(caller) {
            return Err(HandleError::Gone { tool: None });
        }
        if age.is_some_and(|age| age > self.oldest()) {
            return Err(HandleError::Gone {
                tool: Some(kept.head.tool),
            });
        }
        Ok(kept)
    }

    fn oldest(&self) -> Duration {
        Duration::from_secs(self.keep_hours.saturating_mul(3_600))
    }

    fn sweep(&self) {
        let mut files = self.files();
        files.sort_by_key(|file| std::cmp::Reverse(file.written));
        let mut room = self.keep_bytes;
        let mut is_newest = true;
        for file in files {
            let age = file.written.elapsed().unwrap_or_default();
            let stays = match file.what {
                What::Unfinished => age < WRITING_MAX,
                What::Gone => false,
                What::Result => is_newest || (age <= self.oldest() && file.bytes <= room),
            };
            if stays {
                room = room.saturating_sub(file.bytes);
                is_newest &= !matches!(file.what, What::Result);
            } else {
                self.remove(&file);
            }
        }
    }

    fn files(&self) -> Vec<File> {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return Vec::new();
        };
        let file = |entry: fs::DirEntry| {
            let about = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            let path = entry.path();
            let name = entry.file_name();
            let is_unfinished = name.as_encoded_bytes().starts_with(UNFINISHED.as_bytes());
            let what = match path.extension() {
                _ if is_unfinished => What::Unfinished,
                Some(extension) if extension == GONE => What::Gone,
                _ => What::Result,
            };
            Some(File {
                written: about.modified().ok()?,
                bytes: about.len(),
                path,
                what,
            })
        };
        entries.filter_map(Result::ok).filter_map(file).collect()
    }

    /// Removes a file; of a result it is noted whose tool gave it.
    fn remove(&self, file: &File) {
        let handle = file.path.file_stem().and_then(|stem| stem.to_str());
        if matches!(file.what, What::Result)
            && let Some(handle) = handle
            && let Ok(head) = Kept::read_head(&file.path)
            && let Err(error) = gone::note(&self.folder, handle, &head)
        {
            debug!(%error, "what is left of an old result was not written");
        }
        if let Err(error) = fs::remove_file(&file.path) {
            // Another proxy's sweep may have been here first.
            debug!(%error, "an old result was not removed");
        }
    }

    fn file(&self, handle: &str) -> PathBuf {
        self.folder.join(format!("{handle}.result"))
    }
}

struct File {
    path: PathBuf,
    written: SystemTime,
    bytes: u64,
    what: What,
}

enum What {
    Result,
    /// As an older version of ours has left it.
    Gone,
    Unfinished,
}

fn new_handle() -> io::Result<String> {
    let mut bytes = [0; HANDLE_BYTES];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(format!("r{:016x}", u64::from_be_bytes(bytes)))
}

/// Also what keeps a handle from naming a file elsewhere.
fn is_handle(text: &str) -> bool {
    let digits = text.strip_prefix('r').unwrap_or_default();
    digits.len() == 2 * HANDLE_BYTES && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests;
