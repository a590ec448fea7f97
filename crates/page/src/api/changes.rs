//! Making a change of the configuration, and undoing it.

use tokio::runtime::Handle;

use super::answer::Done;
use crate::{
    configure::ConfigChange,
    error::ApiError,
    page_state::PageState,
    routes::{Call, Nothing},
};

impl PageState {
    /// Makes a change of the configuration, keeps what undoes it, and waits until it is in effect.
    /// Blocks.
    pub(crate) fn change(&self, change: &ConfigChange, is_dry_run: bool) -> Result<Done, ApiError> {
        let changed = self.configure.change(change, is_dry_run)?;
        let is_made = !is_dry_run && changed.before != changed.after;
        // A tab that asks again at once sees its change.
        let is_late = is_made && !Handle::current().block_on((self.daemon.settle)());
        let later = if is_late {
            "; the daemon is busy, and applies it within seconds"
        } else {
            ""
        };
        Ok(Done {
            message: format!("{}{later}", changed.message),
            diff: (!changed.diff.is_empty()).then(|| changed.diff.clone()),
            name: changed.name.clone(),
            address: None,
            undo: is_made.then(|| self.changes.add(changed)),
        })
    }
}

pub(crate) fn undo(call: &Call<Nothing, Nothing>) -> Result<Done, ApiError> {
    let id = call.path[0].parse().ok();
    let change = id.and_then(|id| call.page.changes.find_undo(id));
    let change = change.ok_or_else(|| ApiError::not_found("there is no such change"))?;
    call.page.change(&change, false)
}
