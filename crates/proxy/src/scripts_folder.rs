//! The folders of saved scripts and skills at run time: their changes are applied.

use std::{path::Path, sync::Arc, time::Duration};

use gateway::{Gateway, survey, upkeep};
use notify::{RecursiveMode, Watcher as _};
use tokio::{sync::mpsc, time::sleep};
use tracing::warn;

use crate::file_watch::watch;

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
    let folders = [folder.clone(), skills.clone()];
    let is_meant = move |path: &Path| folders.iter().any(|folder| path.starts_with(folder));
    // The parent folder reports when one of the folders is created and removed.
    let mut watcher = watch(folder.parent(), is_meant, sender)
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
