//! Watches folders for changes of files.

use std::path::Path;

use notify::{
    Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _,
    event::{AccessKind, AccessMode},
};
use tokio::sync::mpsc;

/// Watches these folders, not what is below them, and sends a message if a path that `is_meant` changes.
pub(crate) fn watch<'f>(
    folders: impl IntoIterator<Item = &'f Path>,
    is_meant: impl Fn(&Path) -> bool + Send + 'static,
    sender: mpsc::Sender<()>,
) -> notify::Result<RecommendedWatcher> {
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        if event.is_ok_and(|event| concerns(&event, &is_meant)) {
            // A read that is due already sees this change too.
            let _ = sender.try_send(());
        }
    })?;
    for folder in folders {
        watcher.watch(folder, RecursiveMode::NonRecursive)?;
    }
    Ok(watcher)
}

fn concerns(event: &Event, is_meant: impl Fn(&Path) -> bool) -> bool {
    let changes = match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        // The proxy itself reads the files.
        EventKind::Access(_) => false,
        _ => true,
    };
    changes && (event.paths.is_empty() || event.paths.iter().any(|path| is_meant(path)))
}
