//! Making a change of the configuration, and undoing it.

use std::sync::Arc;

use super::answer::{Done, Empty};
use crate::{
    configure::ConfigChange,
    error::ApiError,
    page_state::PageState,
    routes::{Call, Nothing},
};

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
            address: None,
            undo: is_made.then(|| self.changes.add(changed)),
        })
    }
}

pub(crate) async fn undo(call: Call<Nothing, Empty>) -> Result<Done, ApiError> {
    let id = call.path[0].parse().ok();
    let change = id.and_then(|id| call.page.changes.find_undo(id));
    let change = change.ok_or_else(|| ApiError::not_found("there is no such change"))?;
    call.page.change(change, false).await
}
