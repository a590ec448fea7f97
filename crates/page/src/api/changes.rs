//! The changes of the configuration that pages made, and undoing them.

use std::{collections::VecDeque, sync::Arc};

use files::clock::now_s;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Done, servers::Empty};
use crate::{
    configure::{Changed, ConfigChange},
    error::ApiError,
    limits::CHANGES_KEPT_MAX,
    routes::{Call, Nothing},
    server::PageState,
};

/// The changes that can be undone. The texts stay in memory: they may hold secrets.
#[derive(Debug, Default)]
pub(crate) struct Changes(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    last: u64,
    /// The newest first.
    list: VecDeque<(ChangeRow, Changed)>,
}

/// A change of the configuration.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ChangeRow {
    id: u64,
    at: u64,
    message: String,
    diff: String,
    /// True if the file is still as this change left it, as far as pages know.
    can_undo: bool,
}

impl Changes {
    pub(crate) fn list(&self) -> Vec<ChangeRow> {
        let kept = self.0.lock();
        let rows = kept.list.iter().map(|(row, _)| row.clone());
        // Only the last change left the text of the file.
        let rows = rows.enumerate().map(|(at, row)| ChangeRow {
            can_undo: row.can_undo && at == 0,
            ..row
        });
        rows.collect()
    }

    fn add(&self, changed: Changed) -> u64 {
        let mut kept = self.0.lock();
        kept.last += 1;
        let row = ChangeRow {
            id: kept.last,
            at: now_s(),
            message: changed.message.clone(),
            diff: changed.diff.clone(),
            can_undo: true,
        };
        kept.list.push_front((row, changed));
        kept.list.truncate(CHANGES_KEPT_MAX);
        kept.last
    }
}

impl PageState {
    /// Makes a change of the configuration, and keeps what undoes it.
    pub(crate) async fn change(
        self: &Arc<Self>,
        change: ConfigChange,
        is_dry_run: bool,
    ) -> Result<Done, ApiError> {
        let configure = Arc::clone(&self.configure);
        let changing = tokio::task::spawn_blocking(move || configure.change(&change, is_dry_run));
        let changed = changing.await.map_err(anyhow::Error::from)??;
        let is_made = !is_dry_run && changed.before != changed.after;
        Ok(Done {
            message: changed.message.clone(),
            diff: (!changed.diff.is_empty()).then(|| changed.diff.clone()),
            name: changed.name.clone(),
            undo: is_made.then(|| self.changes.add(changed)),
        })
    }
}

pub(crate) async fn undo(call: Call<Nothing, Empty>) -> Result<Done, ApiError> {
    let id: Option<u64> = call.path[0].parse().ok();
    let change = {
        let kept = call.page.changes.0.lock();
        let mut list = kept.list.iter();
        let found = list.find(|(row, _)| Some(row.id) == id);
        found.map(|(_, changed)| ConfigChange::Restore {
            expected: changed.after.clone(),
            text: changed.before.clone(),
        })
    };
    let change = change.ok_or_else(|| ApiError::not_found("there is no such change"))?;
    call.page.change(change, false).await
}
