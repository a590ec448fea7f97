//! What is left of results that went: which tool gave each, so that a late reader hears what to
//! call again.
//!
//! A handle has its place by its number, and whoever comes later takes the place of who was there.
//! So there are never more than [`PLACES`], and nobody ever has to look through them.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use files::{own_folder, write_whole};
use serde::{Deserialize, Serialize};

use super::{
    Caller,
    form::{Head, is_owner},
};

/// How many are remembered: handles that a model still has in its context are the latest.
const PLACES: u64 = 1_024;

/// How long after its result that goes too.
const KEPT: Duration = Duration::from_hours(7 * 24);

#[derive(Debug, Serialize, Deserialize)]
struct Gone {
    handle: String,
    owner: Option<String>,
    tool: String,
}

/// Notes that a result goes.
pub(super) fn note(results: &Path, handle: &str, head: &Head) -> io::Result<()> {
    let Some(place) = place(results, handle) else {
        return Ok(());
    };
    let gone = Gone {
        handle: handle.to_owned(),
        owner: head.owner.clone(),
        tool: head.tool.clone(),
    };
    own_folder(&folder(results))?;
    let text = serde_json::to_string(&gone).expect("texts are always JSON");
    write_whole(&place, text.as_bytes())
}

/// The tool of a result that went, where it was the caller's; `keep` is how long results are kept.
pub(super) fn tool(
    results: &Path,
    handle: &str,
    caller: &Caller,
    keep: Duration,
) -> Option<String> {
    let place = place(results, handle)?;
    let age = fs::metadata(&place).ok()?.modified().ok()?.elapsed();
    if age.unwrap_or_default() > keep.saturating_add(KEPT) {
        return None;
    }
    let gone: Gone = serde_json::from_slice(&fs::read(place).ok()?).ok()?;
    let is_it = gone.handle == handle && is_owner(gone.owner.as_deref(), caller);
    is_it.then_some(gone.tool)
}

fn place(results: &Path, handle: &str) -> Option<PathBuf> {
    let number = u64::from_str_radix(handle.strip_prefix('r')?, 16).ok()?;
    Some(folder(results).join(format!("{:03x}", number % PLACES)))
}

fn folder(results: &Path) -> PathBuf {
    results.join("gone")
}
