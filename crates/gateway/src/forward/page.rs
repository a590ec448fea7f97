//! Pages of a list that is built from several servers.

use jsonrpc::{Fields, Json, quote};
use registry::KnownServer;
use serde_json::json;
use tool::{Digest, ItemKind};

use super::{
    error::{ForwardError, shown},
    request::{Params, member, text},
};
use crate::json_text::replace_member;

/// Elements of one page. Claude Code reads 20 pages at most.
const PAGE_ITEMS: usize = 500;

/// Bytes after which a page is full.
const PAGE_BYTES: usize = 512 * 1024;

/// The list of one kind, from the cursor of the request on. A cursor contains the state of the
/// lists: a cursor from before a change is refused, and the client starts again.
pub(super) fn write(
    kind: ItemKind,
    seen: &[&KnownServer],
    params: &Params,
    items: impl Iterator<Item = String>,
) -> Result<Json, ForwardError> {
    let state = state(kind, seen);
    let offset = read_cursor(params, &state)?;
    let mut page = String::new();
    let mut count = 0;
    let mut items = items.skip(offset).peekable();
    while count < PAGE_ITEMS && page.len() < PAGE_BYTES {
        let Some(item) = items.next() else { break };
        if count > 0 {
            page.push(',');
        }
        page.push_str(&item);
        count += 1;
    }
    let next = items.peek().map(|_| {
        let cursor = quote(&format!("{state}.{}", offset + count));
        format!(r#","nextCursor":{cursor}"#)
    });
    let (key, next) = (kind.list_key(), next.unwrap_or_default());
    Ok(Json::of_built(format!(r#"{{"{key}":[{page}]{next}}}"#)))
}

fn state(kind: ItemKind, seen: &[&KnownServer]) -> String {
    let notes = seen.iter().filter_map(|server| {
        let note = server.offer_note.as_ref()?;
        let list = match kind {
            ItemKind::Prompt => &note.prompts,
            ItemKind::Resource | ItemKind::Template | ItemKind::Skill | ItemKind::App => {
                &note.resources
            }
        };
        Some(format!("{}:{}", server.name, list.digest))
    });
    let notes: Vec<String> = notes.collect();
    let digest = Digest::of_bytes(notes.join(",").as_bytes()).short(12);
    format!("{}.{digest}", kind.list_key())
}

fn read_cursor(params: &Params, state: &str) -> Result<usize, ForwardError> {
    if member(params, "cursor").is_none_or(|cursor| cursor.as_str() == "null") {
        return Ok(0);
    }
    let why = "Invalid params: `cursor` is none of this list as it is now; begin without one";
    let cursor = text(params, "cursor").map_err(|_| ForwardError::params(why))?;
    let offset = cursor.strip_prefix(state);
    let offset = offset.and_then(|it| it.strip_prefix('.')?.parse().ok());
    offset.ok_or_else(|| ForwardError::params(why))
}

/// An element with another text in one member; everything else stays as its server wrote it.
pub(super) fn with_text(item: &str, key: &str, text: &str) -> String {
    match Fields::of(item) {
        Some(fields) => replace_member(&fields, key, &quote(text)),
        None => json!({ key: shown(text) }).to_string(),
    }
}
