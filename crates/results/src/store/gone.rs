//! Records of removed results: the tool that returned each, so that a late reader learns what to
//! call again.
//!
//! The place of a handle depends on its number, and a later handle overwrites an earlier one. So
//! there are never more than [`PLACES`], and no search is needed.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use files::{own_folder, write_whole};
use serde::{Deserialize, Serialize};
use tool::ClientId;

use super::{
    form::{ResultHead, may_read},
    handle::Handle,
};

/// The number of records: handles that a model still has in its context are the latest.
const PLACES: u64 = 1_024;

/// The time after which the record of a result is removed too.
const KEPT: Duration = Duration::from_hours(7 * 24);

#[derive(Debug, Serialize, Deserialize)]
struct Gone {
    handle: String,
    owner: Option<String>,
    tool: String,
}

/// Writes the record of a result that is removed.
pub(super) fn write(results: &Path, handle: &Handle, head: &ResultHead) -> io::Result<()> {
    let gone = Gone {
        handle: handle.to_string(),
        owner: head.owner.clone(),
        tool: head.tool.clone(),
    };
    own_folder(&folder(results))?;
    let text = serde_json::to_string(&gone).expect("texts are always JSON");
    write_whole(&place(results, handle), text.as_bytes())
}

/// The tool of a removed result, if it was the client's; `keep` is how long results are kept.
pub(super) fn read(
    results: &Path,
    handle: &Handle,
    client: Option<&ClientId>,
    keep: Duration,
) -> Option<String> {
    let place = place(results, handle);
    let age = fs::metadata(&place).ok()?.modified().ok()?.elapsed();
    if age.unwrap_or_default() > keep.saturating_add(KEPT) {
        return None;
    }
    let gone: Gone = serde_json::from_slice(&fs::read(place).ok()?).ok()?;
    let is_it = gone.handle == handle.as_str() && may_read(client, gone.owner.as_deref());
    is_it.then_some(gone.tool)
}

fn place(results: &Path, handle: &Handle) -> PathBuf {
    folder(results).join(format!("{:03x}", handle.number() % PLACES))
}

fn folder(results: &Path) -> PathBuf {
    results.join("gone")
}
