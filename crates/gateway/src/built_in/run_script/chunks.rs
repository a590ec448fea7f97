//! Kept results that a script reads from beginning to end, in chunks.

use std::{collections::BTreeMap, path::PathBuf};

use parking_lot::Mutex;
use results::{KeptResult, ReadError, ResultStore};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use tool::ClientId;

use crate::{built_in::internal, error::ToolError};

/// The bytes of a kept result that are read and sent to a script at one time.
const CHUNK_BYTES: usize = 256 * 1024;

/// The results that a script has begun to read. Each was authorized and verified before.
#[derive(Debug, Default)]
pub(super) struct OpenResults(Mutex<BTreeMap<String, PathBuf>>);

impl OpenResults {
    pub(super) fn knows(&self, handle: &str) -> bool {
        self.0.lock().contains_key(handle)
    }

    /// Returns the text from a byte on, and the start of the next chunk, if there is one.
    pub(super) async fn read(
        &self,
        results: &ResultStore,
        client: Option<&ClientId>,
        handle: &str,
        from: usize,
    ) -> Result<Value, ToolError> {
        let known = self.0.lock().get(handle).cloned();
        let path = if let Some(path) = known {
            path
        } else {
            let opened = results.open(handle, client).await;
            let kept = opened.map_err(|error| ReadError::Handle(handle.to_owned(), error))?;
            let path = kept.path.clone();
            self.0.lock().insert(handle.to_owned(), path.clone());
            path
        };
        let reading = spawn_blocking(move || {
            let mut kept = KeptResult::reopen(&path)?;
            let text = kept.read(from..from.saturating_add(CHUNK_BYTES))?;
            let to = from + text.len();
            let next = (!text.is_empty() && to < kept.head.text_bytes()).then_some(to);
            Ok(json!({"text": text, "next": next}))
        });
        let read = reading.await.map_err(internal)?;
        Ok(read.map_err(ReadError::Disk)?)
    }
}
