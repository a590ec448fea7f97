//! The configuration at run time: the file is watched, and its changes are applied.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use cluster::Cluster;
use config::{Config, ConfigError};
use fleet::Applied;
use gateway::{
    Gateway, survey,
    upkeep::{self, Upkeep},
};
use notify::RecommendedWatcher;
use tokio::{
    sync::{Notify, mpsc, oneshot, watch},
    task::{JoinError, JoinSet},
    time::{Instant, sleep_until, timeout, timeout_at},
};
use tracing::{info, warn};

use crate::{
    allowance,
    cli::global::Global,
    file_watch::watch,
    node::{follow_shared, open_gateway},
    scripts_folder,
    shared_pins::share_pins,
};

/// Reads the configuration again, from the same file as the first time.
pub(crate) type Load = Arc<dyn Fn() -> Result<Config, ConfigError> + Send + Sync>;

/// Editors write a file in several steps; it is read when there was no change for this time.
const QUIET: Duration = Duration::from_millis(100);

/// A file that changes all the time is read anyway after this time.
const QUIET_WITHIN: Duration = Duration::from_secs(2);

/// The number of times that a file is read if another program writes it meanwhile.
const LOADS_MAX: usize = 10;

/// The most that the time of a file lies before the write, by the resolution of file times.
const FILE_TIME_RESOLUTION: Duration = Duration::from_millis(20);

/// A missing or blank file is most often one that is being written, which takes seconds on a busy disk.
/// Applying it would stop all servers, so it is applied only after this time.
const BLANK_WAIT: Duration = Duration::from_secs(10);

pub(crate) fn loader_of(global: &Global) -> Load {
    let global = global.clone();
    Arc::new(move || global.load())
}

/// Opens the state folder, starts the upkeep of the servers, and follows the file. Starts only servers
/// that are configured to start with the proxy. Needs a runtime.
pub(crate) fn open(
    config: Config,
    load: Load,
    nudge: Arc<Notify>,
    asked: mpsc::Receiver<Look>,
    daemon: watch::Sender<daemon::DaemonSettings>,
    is_member: bool,
) -> anyhow::Result<(Arc<Gateway>, Upkeep)> {
    warn_of_removed_keys(&config);
    let (gateway, cluster) = open_gateway(&config, is_member)?;
    allowance::follow(&gateway, &config.file);
    let mut upkeep = Upkeep::begin(&gateway);
    upkeep.add_later(upkeep::sweep(config.gateway.state_dir.clone()));
    upkeep.add(scripts_folder::follow(Arc::clone(&gateway)));
    if let Some(cluster) = &cluster {
        let following = follow_shared(Arc::clone(cluster), config.clone(), Arc::clone(&nudge));
        upkeep.add(following);
        upkeep.add(share_pins(Arc::clone(cluster), Arc::clone(&gateway)));
    }
    let follower = Follower {
        gateway: Arc::clone(&gateway),
        cluster,
        config,
        load,
        nudge,
        asked,
        daemon,
    };
    upkeep.add_later(follower.follow());
    Ok((gateway, upkeep))
}

/// Opens the gateway for serving without a daemon: its linger time is not used, and no process requests
/// a reload.
pub(crate) fn open_alone(config: Config, load: Load) -> anyhow::Result<(Arc<Gateway>, Upkeep)> {
    let (daemon, _) = watch::channel(config.daemon);
    let (_, asked) = mpsc::channel(1);
    open(config, load, Arc::default(), asked, daemon, false)
}

/// A request to look at the file now; dropped when the file as it is then is in effect.
pub(crate) type Look = oneshot::Sender<()>;

struct Follower {
    gateway: Arc<Gateway>,
    /// Set if this process is a node of a cluster.
    cluster: Option<Arc<Cluster>>,
    /// The configuration that was applied last.
    config: Config,
    load: Load,
    /// Requests a reload although no file changed.
    nudge: Arc<Notify>,
    asked: mpsc::Receiver<Look>,
    daemon: watch::Sender<daemon::DaemonSettings>,
}

impl Follower {
    /// Applies each change of the file, and reloads it when nudged. Runs until it is dropped.
    async fn follow(mut self) {
        let file = self.config.file.clone();
        let (sender, mut changes) = mpsc::channel(1);
        // The watcher lives as long as this.
        let _watcher = watch_file(&file, sender)
            .inspect_err(|error| warn!(%error, "the file is not watched; SIGHUP reloads it"));
        let mut seen = FileSnapshot::read(&file).await;
        // The watcher does not report a change between the load and its start.
        if seen
            .modified
            .is_some_and(|at| at + FILE_TIME_RESOLUTION >= self.config.read_at)
        {
            self.nudge.notify_one();
        }
        let mut surveys = JoinSet::new();
        loop {
            let mut looks: Vec<Look> = Vec::new();
            let is_nudged = tokio::select! {
                Some(()) = changes.recv() => false,
                () = self.nudge.notified() => true,
                Some(look) = self.asked.recv() => {
                    looks.push(look);
                    false
                }
            };
            if !looks.is_empty() && FileSnapshot::read(&file).await.text == seen.text {
                continue;
            }
            let mut wakes = Wakes {
                changes: &mut changes,
                asked: &mut self.asked,
                looks: &mut looks,
            };
            let now = FileSnapshot::read_settled(&file, &seen, &mut wakes).await;
            if now.text == seen.text && !is_nudged {
                continue;
            }
            let loaded;
            (seen, loaded) = load_whole(&self.load, &file, now, &mut wakes).await;
            let applied = self.reload(loaded).await;
            let unsure = applied.map(|it| list_unsure(&self.gateway, &it));
            if let Some(unsure) = unsure.filter(|it| !it.is_empty()) {
                let catalog = Arc::clone(&self.gateway.catalog);
                surveys.spawn(survey::get_to_know(catalog, unsure));
            }
            while surveys.try_join_next().is_some() {}
        }
    }

    /// Applies the loaded configuration; if it cannot be used, logs the reason, and the previous
    /// configuration stays in effect.
    async fn reload(&mut self, loaded: Loaded) -> Option<Applied> {
        let before = self.config.clone();
        let at = Arc::clone(&self.gateway);
        let taking = tokio::task::spawn_blocking(move || {
            let config = loaded.map_err(|error| error.to_string())?;
            let config = config.map_err(|error| error.to_string())?;
            if config.gateway.state_dir != before.gateway.state_dir {
                let folder = before.gateway.state_dir.display();
                return Err(format!(
                    "`state_dir` cannot change while proxy runs in {folder}"
                ));
            }
            if needs_restart(&config, &before) {
                warn!(
                    "`log`, `results.keep_hours`, `results.keep_mib`, `search.semantic`, \
                     `secrets.store`, `[traces]`, `[http]` and `[cluster]` take effect at the next start"
                );
            }
            let applied = at.apply(config.gateway.clone());
            let applied = applied.map_err(|error| error.to_string())?;
            // The next search finds the index loaded.
            let _ = at.catalog.registry.generation();
            Ok((config, applied))
        });
        match taking.await {
            Ok(Ok((config, applied))) => {
                self.daemon.send_replace(config.daemon);
                if let Some(cluster) = &self.cluster {
                    cluster.note_applied(config.shared_revision);
                }
                warn_of_removed_keys(&config);
                self.config = config;
                self.gateway.note_config_mistakes(None);
                let (added, changed) = (applied.added.len(), applied.changed.len());
                info!(
                    added,
                    changed,
                    removed = applied.removed.len(),
                    "the configuration was reloaded"
                );
                Some(applied)
            }
            Ok(Err(mistakes)) => {
                warn!(%mistakes, "the configuration has mistakes; the previous one stays in effect");
                self.gateway.note_config_mistakes(Some(mistakes));
                None
            }
            Err(error) => {
                warn!(%error, "the configuration was not read");
                let why = format!("it was not read: {error}");
                self.gateway.note_config_mistakes(Some(why));
                None
            }
        }
    }
}

/// The reasons to look at the file again while it is read.
struct Wakes<'a> {
    changes: &'a mut mpsc::Receiver<()>,
    asked: &'a mut mpsc::Receiver<Look>,
    /// The requests that the current read fulfils.
    looks: &'a mut Vec<Look>,
}

/// The result of loading the configuration; loading may panic.
type Loaded = Result<Result<Config, ConfigError>, JoinError>;

/// The state of a file at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileSnapshot {
    /// `None`: there is no file.
    text: Option<Vec<u8>>,
    /// Two writes of the same text have an empty file between them.
    modified: Option<SystemTime>,
}

impl FileSnapshot {
    async fn read(path: &Path) -> Self {
        // A write between both leaves an old text with a new time, which is read again; the reverse would
        // hide the change.
        let text = tokio::fs::read(path).await.ok();
        let about = tokio::fs::metadata(path).await.ok();
        Self {
            text,
            modified: about.and_then(|about| about.modified().ok()),
        }
    }

    /// Returns the file once no program writes it any more. A command asks for a look when it has written the
    /// whole file, which is blank if it removed the only server.
    async fn read_settled(path: &Path, before: &Self, wakes: &mut Wakes<'_>) -> Self {
        let deadline = Instant::now() + BLANK_WAIT;
        loop {
            let settling =
                async { while let Ok(Some(())) = timeout(QUIET, wakes.changes.recv()).await {} };
            let _ = timeout(QUIET_WITHIN, settling).await;
            let seen = Self::read(path).await;
            let is_due = Instant::now() >= deadline || !wakes.looks.is_empty();
            if !seen.is_blank() || before.is_blank() || is_due {
                return seen;
            }
            tokio::select! {
                changed = timeout_at(deadline, wakes.changes.recv()) => {
                    if let Ok(None) = changed {
                        // The file is not watched any more.
                        sleep_until(deadline).await;
                    }
                }
                Some(look) = wakes.asked.recv() => wakes.looks.push(look),
            }
        }
    }

    fn is_blank(&self) -> bool {
        let text = self.text.as_deref().unwrap_or_default();
        text.iter().all(u8::is_ascii_whitespace)
    }
}

/// Loads a file in the state `seen`, and again if it was written meanwhile.
async fn load_whole<T: Send + 'static>(
    load: &Arc<dyn Fn() -> T + Send + Sync>,
    path: &Path,
    mut seen: FileSnapshot,
    wakes: &mut Wakes<'_>,
) -> (FileSnapshot, Result<T, JoinError>) {
    let mut loads = 0;
    loop {
        let load = Arc::clone(load);
        let loaded = tokio::task::spawn_blocking(move || load()).await;
        loads += 1;
        if loads == LOADS_MAX || FileSnapshot::read(path).await == seen {
            return (seen, loaded);
        }
        seen = FileSnapshot::read_settled(path, &seen, wakes).await;
    }
}

fn warn_of_removed_keys(config: &Config) {
    for note in &config.removed_keys {
        warn!("{note}");
    }
}

fn needs_restart(config: &Config, before: &Config) -> bool {
    let kept = |config: &Config| {
        let results = config.gateway.results;
        (results.keep_hours, results.keep_mib)
    };
    config.log != before.log
        || kept(config) != kept(before)
        || config.gateway.search.embeds != before.gateway.search.embeds
        || config.http != before.http
        || config.cluster != before.cluster
        || config.gateway.secrets != before.gateway.secrets
        || config.gateway.traces != before.gateway.traces
}

/// Servers that are new, and those whose launch changed and that may be different servers.
fn list_unsure(gateway: &Gateway, applied: &Applied) -> Vec<tool::ServerName> {
    let unknown = survey::unknown(&gateway.catalog.registry.catalog());
    let added = applied.added.iter().filter(|name| unknown.contains(name));
    let changed = applied.changed.iter();
    let changed = changed.filter_map(|(name, is_other)| is_other.then_some(name));
    added.chain(changed).cloned().collect()
}

/// Watches the folder of the file, because editors replace the file with a new one. If the file is a
/// link, the folder of its target is watched as well.
fn watch_file(file: &Path, sender: mpsc::Sender<()>) -> notify::Result<RecommendedWatcher> {
    let named = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let files = [file.to_owned(), named];
    let mut folders: Vec<&Path> = files.iter().filter_map(|file| file.parent()).collect();
    folders.dedup();
    let meant = files.clone();
    let is_meant = move |path: &Path| meant.iter().any(|it| it.file_name() == path.file_name());
    watch(folders, is_meant, sender)
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        sync::atomic::{AtomicBool, Ordering},
    };

    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_file_that_is_blank_for_a_moment_is_being_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        fs::write(&path, "log = \"info\"").unwrap();
        let before = FileSnapshot::read(&path).await;
        fs::write(&path, "").unwrap();
        let (sender, mut changes) = mpsc::channel(1);
        let (_, mut asked) = mpsc::channel(1);
        let mut wakes = Wakes {
            changes: &mut changes,
            asked: &mut asked,
            looks: &mut Vec::new(),
        };
        let reading = FileSnapshot::read_settled(&path, &before, &mut wakes);
        let writing = async {
            sleep(BLANK_WAIT / 2).await;
            fs::write(&path, "log = \"debug\"").unwrap();
            let _ = sender.try_send(());
        };
        let (seen, ()) = tokio::join!(reading, writing);
        assert_eq!(seen.text.as_deref(), Some(&b"log = \"debug\""[..]));

        fs::write(&path, " \n").unwrap();
        let seen = FileSnapshot::read_settled(&path, &seen, &mut wakes).await;
        assert_eq!(
            seen.text.as_deref(),
            Some(&b" \n"[..]),
            "a blank file is applied after the wait"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_blank_file_that_a_command_has_written_is_applied_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        fs::write(&path, "log = \"info\"").unwrap();
        let before = FileSnapshot::read(&path).await;
        fs::write(&path, "").unwrap();
        let (_sender, mut changes) = mpsc::channel(1);
        let (commands, mut asked) = mpsc::channel(1);
        let (done, _is_done) = oneshot::channel();
        commands.try_send(done).unwrap();
        let mut looks = Vec::new();
        let mut wakes = Wakes {
            changes: &mut changes,
            asked: &mut asked,
            looks: &mut looks,
        };
        let began = Instant::now();
        let seen = FileSnapshot::read_settled(&path, &before, &mut wakes).await;
        assert!(seen.is_blank() && looks.len() == 1);
        assert!(began.elapsed() < BLANK_WAIT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_rewritten_file_differs_although_its_text_is_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        fs::write(&path, "").unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let before = FileSnapshot::read(&path).await;
        assert_eq!(FileSnapshot::read(&path).await, before);
        fs::write(&path, "").unwrap();
        assert_ne!(FileSnapshot::read(&path).await, before);
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_changes_while_it_is_loaded_is_loaded_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        fs::write(&path, "old").unwrap();
        let (_sender, mut changes) = mpsc::channel(1);
        let (_, mut asked) = mpsc::channel(1);
        let mut wakes = Wakes {
            changes: &mut changes,
            asked: &mut asked,
            looks: &mut Vec::new(),
        };
        let (written, is_first) = (path.clone(), AtomicBool::new(true));
        let load: Arc<dyn Fn() -> String + Send + Sync> = Arc::new(move || {
            if is_first.swap(false, Ordering::SeqCst) {
                fs::write(&written, "newer").unwrap();
                return "half of it".to_owned();
            }
            fs::read_to_string(&written).unwrap()
        });
        let seen = FileSnapshot::read(&path).await;
        let (seen, loaded) = load_whole(&load, &path, seen, &mut wakes).await;
        assert_eq!(loaded.unwrap(), "newer");
        assert_eq!(seen.text.as_deref(), Some(&b"newer"[..]));
    }
}
