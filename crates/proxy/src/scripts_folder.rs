//! The folders of saved scripts and skills at run time: their changes are applied.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use gateway::{Gateway, survey, upkeep};
use notify::{
    Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _,
    event::{AccessKind, AccessMode},
};
use tokio::{sync::mpsc, time::sleep};
use tracing::warn;

/// Editors write a file in several steps; the folder is read this long after the first.
const GATHER: Duration = Duration::from_millis(100);

/// Applies each change of the folders, and their creation. Runs until it is dropped.
pub(crate) async fn follow(gateway: Arc<Gateway>) {
    let Some(folder) = gateway.settings().scripts.clone() else {
        return;
    };
    let skills = folder.with_file_name("skills");
    if folder.is_dir() || skills.is_dir() {
        survey::take_in_scripts(&gateway.catalog).await;
    }
    // A watcher has a thread of its own, and starting it takes longer than the first answers.
    sleep(upkeep::FIRST_ANSWERS).await;
    let (sender, mut changes) = mpsc::channel(1);
    let mut watcher = watch([folder.clone(), skills.clone()], sender)
        .inspect_err(|error| warn!(%error, "the scripts folder is not watched"))
        .ok();
    loop {
        if let Some(watcher) = &mut watcher {
            // It may be another folder of the same name by now.
            let _ = watcher.unwatch(&folder);
            let _ = watcher.watch(&folder, RecursiveMode::NonRecursive);
            let _ = watcher.unwatch(&skills);
            let _ = watcher.watch(&skills, RecursiveMode::Recursive);
        }
        survey::take_in_scripts(&gateway.catalog).await;
        if changes.recv().await.is_none() {
            return;
        }
        sleep(GATHER).await;
        let _ = changes.try_recv();
    }
}

/// Watches the parent folder, which reports when one of the folders is created and removed.
fn watch(folders: [PathBuf; 2], sender: mpsc::Sender<()>) -> notify::Result<RecommendedWatcher> {
    let parent = folders[0].parent().map(Path::to_owned);
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        if event.is_ok_and(|event| concerns(&event, &folders)) {
            // A read that is due already sees this change too.
            let _ = sender.try_send(());
        }
    })?;
    if let Some(parent) = parent {
        watcher.watch(&parent, RecursiveMode::NonRecursive)?;
    }
    Ok(watcher)
}

fn concerns(event: &Event, folders: &[PathBuf]) -> bool {
    let changes = match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        // The proxy itself reads the files.
        EventKind::Access(_) => false,
        _ => true,
    };
    let is_within = |path: &PathBuf| folders.iter().any(|folder| path.starts_with(folder));
    changes && (event.paths.is_empty() || event.paths.iter().any(is_within))
}
