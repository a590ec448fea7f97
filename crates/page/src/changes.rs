//! The changes of the configuration that pages made.

use std::collections::VecDeque;

use files::clock::now_s;
use parking_lot::Mutex;
use serde::Serialize;

use crate::{
    configure::{Changed, ConfigChange},
    limits::CHANGES_KEPT_MAX,
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
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

    pub(crate) fn add(&self, changed: Changed) -> u64 {
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

    /// Returns the change that undoes another.
    pub(crate) fn find_undo(&self, id: u64) -> Option<ConfigChange> {
        let kept = self.0.lock();
        let (_, changed) = kept.list.iter().find(|(row, _)| row.id == id)?;
        Some(ConfigChange::Restore {
            expected: changed.after.clone(),
            text: changed.before.clone(),
        })
    }
}
