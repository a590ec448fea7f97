//! Results that were too long for a client, kept whole on disk.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use fleet::Json;
use tokio::sync::oneshot;
use tracing::debug;

use crate::config::Results;

/// The folder of kept results: one private file each, named after its handle. They outlive a
/// restart, for [`Results::keep_hours`] and [`Results::keep_mib`]; the oldest go first.
#[derive(Debug, Clone)]
pub struct ResultStore {
    folder: PathBuf,
    keep_hours: u64,
    keep_bytes: u64,
}

/// Random bytes in a handle: nobody guesses another one's.
const HANDLE_BYTES: usize = 8;

const BYTES_PER_MIB: u64 = 1024 * 1024;

/// A file that is being written, by us or by another proxy.
const UNFINISHED: &str = ".unfinished-";

/// A file that was being written for longer than this was given up by a writer that died.
const WRITING_MAX: Duration = Duration::from_hours(1);

impl ResultStore {
    pub fn new(state_dir: &Path, limits: &Results) -> Self {
        Self {
            folder: state_dir.join("results"),
            keep_hours: limits.keep_hours,
            keep_bytes: limits.keep_mib.saturating_mul(BYTES_PER_MIB),
        }
    }

    pub fn keep_hours(&self) -> u64 {
        self.keep_hours
    }

    /// Keeps a result and gives its handle, or says why it could not. Room for the next one is
    /// made afterwards: the answer does not wait for that.
    pub async fn keep(&self, result: &Json) -> Result<String, String> {
        let (store, result) = (self.clone(), result.clone());
        let (done, written) = oneshot::channel();
        tokio::task::spawn_blocking(move || {
            let handle = store.write(result.as_str());
            let _ = done.send(handle);
            store.sweep();
        });
        match written.await {
            Ok(handle) => handle.map_err(|error| error.to_string()),
            Err(_) => Err("the writer ended early".to_owned()),
        }
    }

    /// The whole result under a handle, as JSON; `None` when nothing is kept under it.
    pub fn read(&self, handle: &str) -> Option<String> {
        is_handle(handle).then(|| fs::read_to_string(self.file(handle)).ok())?
    }

    fn write(&self, result: &str) -> io::Result<String> {
        private_folder(&self.folder)?;
        let handle = new_handle()?;
        let mut file = tempfile::Builder::new()
            .prefix(UNFINISHED)
            .tempfile_in(&self.folder)?;
        io::Write::write_all(&mut file, result.as_bytes())?;
        file.persist(self.file(&handle))?;
        Ok(handle)
    }

    /// What is too old goes, then the oldest beyond the room there is; the newest stays.
    fn sweep(&self) {
        let mut files = self.files();
        files.sort_by_key(|file| std::cmp::Reverse(file.written));
        let mut room = self.keep_bytes;
        let oldest = Duration::from_secs(self.keep_hours.saturating_mul(3_600));
        for (place, file) in files.into_iter().enumerate() {
            let age = file.written.elapsed().unwrap_or_default();
            if place == 0 || (age <= oldest && file.bytes <= room) {
                room = room.saturating_sub(file.bytes);
            } else if let Err(error) = fs::remove_file(&file.path) {
                // Another proxy's sweep may have been here first.
                debug!(%error, "an old result was not removed");
            }
        }
    }

    fn files(&self) -> Vec<Kept> {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return Vec::new();
        };
        let kept = |entry: fs::DirEntry| {
            let about = entry.metadata().ok()?;
            let written = about.modified().ok()?;
            let is_unfinished = entry
                .file_name()
                .as_encoded_bytes()
                .starts_with(UNFINISHED.as_bytes());
            let is_young = written.elapsed().unwrap_or_default() < WRITING_MAX;
            (!is_unfinished || !is_young).then(|| Kept {
                path: entry.path(),
                written,
                bytes: about.len(),
            })
        };
        entries.filter_map(Result::ok).filter_map(kept).collect()
    }

    fn file(&self, handle: &str) -> PathBuf {
        self.folder.join(format!("{handle}.json"))
    }
}

struct Kept {
    path: PathBuf,
    written: SystemTime,
    bytes: u64,
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

fn private_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::ResultStore;
    use crate::config::Results;

    fn store(keep_mib: u64) -> (ResultStore, tempfile::TempDir) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let limits = Results {
            max_tokens: 1,
            keep_hours: 24,
            keep_mib,
        };
        (ResultStore::new(folder.path(), &limits), folder)
    }

    #[tokio::test]
    async fn a_result_is_kept_privately_and_read_back() {
        let (store, folder) = store(1);
        let json = fleet::json(r#"{"content":[]}"#.to_owned()).expect("JSON");
        let handle = store.keep(&json).await.expect("there is room");
        assert_eq!(store.read(&handle).as_deref(), Some(json.as_str()));
        let file = folder.path().join(format!("results/{handle}.json"));
        let mode = fs::metadata(file)
            .expect("it is there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn the_oldest_go_when_the_room_is_used_up() {
        let (store, _folder) = store(1);
        let big = format!("\"{}\"", "x".repeat(700_000));
        let first = store.write(&big).expect("the disk has room");
        store.sweep();
        assert!(store.read(&first).is_some());
        let second = store.write(&big).expect("the disk has room");
        store.sweep();
        assert_eq!(store.read(&first), None);
        assert!(store.read(&second).is_some());
    }

    #[tokio::test]
    async fn nothing_is_kept_under_what_is_no_handle() {
        let (store, folder) = store(1);
        fs::write(folder.path().join("secret.json"), "{}").expect("writable");
        for handle in [
            "",
            "r",
            "../secret",
            "r0123456789abcdef",
            "r../secret0000000",
        ] {
            assert_eq!(store.read(handle), None, "{handle}");
        }
    }
}
