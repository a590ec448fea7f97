//! The configuration while we run: the file is watched, and what changes in it is taken in.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use config::{Config, ConfigError, Environment};
use fleet::Applied;
use gateway::{
    Gateway, survey,
    upkeep::{self, Upkeep},
};
use notify::{
    Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _,
    event::{AccessKind, AccessMode},
};
use tokio::{
    sync::{Notify, mpsc, watch},
    task::JoinSet,
    time::sleep,
};
use tracing::{info, warn};

use crate::{allowance, cli::Global, scripts_folder};

/// Reads the configuration anew, from where it was read first.
pub(crate) type Load = Arc<dyn Fn() -> Result<Config, ConfigError> + Send + Sync>;

/// Editors write a file in several steps; this long after the first we look.
const GATHER: Duration = Duration::from_millis(100);

pub(crate) fn loader_of(global: &Global) -> Load {
    let overrides = global.overrides();
    Arc::new(move || config::load(&overrides, &Environment::of_process()))
}

/// Opens the state folder and begins to take care of the servers, and to follow the file. Starts
/// no server but those that are to be started with us. Needs a runtime.
pub(crate) fn open(
    config: Config,
    load: Load,
    nudge: Arc<Notify>,
    daemon: watch::Sender<daemon::Settings>,
) -> anyhow::Result<(Arc<Gateway>, Upkeep)> {
    upkeep::sweep(&config.gateway.state_dir);
    let gateway = Gateway::new(config.gateway.clone())?;
    allowance::follow(&gateway, &config.file);
    let mut upkeep = Upkeep::begin(&gateway);
    upkeep.add(scripts_folder::follow(Arc::clone(&gateway)));
    let follower = Follower {
        gateway: Arc::clone(&gateway),
        config,
        load,
        nudge,
        daemon,
    };
    upkeep.add(follower.follow());
    Ok((gateway, upkeep))
}

/// The follower of the configuration while we run.
struct Follower {
    gateway: Arc<Gateway>,
    /// As it was taken in last.
    config: Config,
    load: Load,
    /// Asks for a look although no file changed.
    nudge: Arc<Notify>,
    daemon: watch::Sender<daemon::Settings>,
}

impl Follower {
    /// Takes in each change of the file, and looks at it when nudged. Runs until it is dropped.
    async fn follow(mut self) {
        let file = self.config.file.clone();
        let (sender, mut changes) = mpsc::channel(1);
        // The watcher lives as long as this.
        let _watcher = watch_file(&file, sender)
            .inspect_err(|error| warn!(%error, "the file is not watched; SIGHUP has it read"));
        let mut text = std::fs::read(&file).ok();
        let mut surveys = JoinSet::new();
        loop {
            let is_nudged = tokio::select! {
                Some(()) = changes.recv() => false,
                () = self.nudge.notified() => true,
            };
            sleep(GATHER).await;
            let _ = changes.try_recv();
            let now = tokio::fs::read(&file).await.ok();
            if now == text && !is_nudged {
                continue;
            }
            text = now;
            if let Some(applied) = self.reload().await {
                let unsure = list_unsure(&self.gateway, &applied);
                if !unsure.is_empty() {
                    surveys.spawn(survey::get_to_know(Arc::clone(&self.gateway), unsure));
                }
            }
            while surveys.try_join_next().is_some() {}
        }
    }

    /// Takes in what the file says now; or says why not, and what it said before holds.
    async fn reload(&mut self) -> Option<Applied> {
        let (load, before) = (Arc::clone(&self.load), self.config.clone());
        let at = Arc::clone(&self.gateway);
        let taking = tokio::task::spawn_blocking(move || {
            let config = load().map_err(|error| error.to_string())?;
            if config.gateway.state_dir != before.gateway.state_dir {
                let folder = before.gateway.state_dir.display();
                return Err(format!(
                    "`state_dir` cannot change while we run in {folder}"
                ));
            }
            if needs_restart(&config, &before) {
                warn!(
                    "`log`, `results.keep_hours`, `results.keep_mib`, `search.semantic`, \
                     `secrets.store`, `[traces]` and `[http]` hold from the next start on"
                );
            }
            let applied = at.apply(config.gateway.clone());
            let applied = applied.map_err(|error| error.to_string())?;
            // The next search finds it loaded.
            let _ = at.registry.generation();
            Ok((config, applied))
        });
        match taking.await {
            Ok(Ok((config, applied))) => {
                self.daemon.send_replace(config.daemon);
                self.config = config;
                self.gateway.note_config_mistakes(None);
                let (added, changed) = (applied.added.len(), applied.changed.len());
                info!(
                    added,
                    changed,
                    removed = applied.removed.len(),
                    "the configuration was read anew"
                );
                Some(applied)
            }
            Ok(Err(mistakes)) => {
                warn!(%mistakes, "the configuration has mistakes; what it said before still holds");
                self.gateway.note_config_mistakes(Some(mistakes));
                None
            }
            Err(error) => {
                warn!(%error, "the configuration was not read");
                None
            }
        }
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
        || config.gateway.secrets != before.gateway.secrets
        || config.gateway.traces != before.gateway.traces
}

/// Servers that are new to us, and those that are started in another way and may be others.
fn list_unsure(gateway: &Gateway, applied: &Applied) -> Vec<tool::ServerName> {
    let unknown = survey::unknown(&gateway.registry.catalog());
    let added = applied.added.iter().filter(|name| unknown.contains(name));
    let changed = applied.changed.iter();
    let changed = changed.filter_map(|(name, is_other)| is_other.then_some(name));
    added.chain(changed).cloned().collect()
}

/// Watches the folder: editors put a new file in the place of the old one. Where the file is a
/// link, the folder of what it names is watched as well.
fn watch_file(file: &Path, sender: mpsc::Sender<()>) -> notify::Result<RecommendedWatcher> {
    let named = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let files = [file.to_owned(), named];
    let meant = files.clone();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        if event.is_ok_and(|event| concerns(&event, &meant)) {
            // A look that is due already sees this change too.
            let _ = sender.try_send(());
        }
    })?;
    let mut folders: Vec<&Path> = files.iter().filter_map(|file| file.parent()).collect();
    folders.dedup();
    for folder in folders {
        watcher.watch(folder, RecursiveMode::NonRecursive)?;
    }
    Ok(watcher)
}

fn concerns(event: &Event, files: &[PathBuf]) -> bool {
    let changes = match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        // We read it ourselves.
        EventKind::Access(_) => false,
        _ => true,
    };
    let name = |path: &PathBuf| path.file_name().map(OsStr::to_owned);
    let is_meant = |path: &PathBuf| files.iter().any(|file| name(file) == name(path));
    changes && (event.paths.is_empty() || event.paths.iter().any(is_meant))
}
