//! The heads of other nodes' logs in this one, and what they prove about a log.

use std::{
    collections::BTreeMap,
    fs::File,
    io,
    io::{BufRead as _, BufReader},
    path::Path,
};

use serde_json::Value;

use super::{
    line::{number_in, split_line},
    segments::list_segments,
};
use crate::record::AuditHead;

/// Returns the newest head that this log has of a node's log.
pub fn find_head(folder: &Path, node: &str) -> io::Result<Option<AuditHead>> {
    for segment in list_segments(folder)?.iter().rev() {
        let text = std::fs::read(segment)?;
        for line in text.rsplit(|byte| *byte == b'\n') {
            let line: Value = serde_json::from_slice(line).unwrap_or_default();
            if line["log_of"] == node
                && let (Some(number), Some(digest)) = (line["line"].as_u64(), line["has"].as_str())
            {
                let digest = digest.to_owned();
                return Ok(Some(AuditHead { number, digest }));
            }
        }
    }
    Ok(None)
}

/// Returns for each head whether the log has its line. `None`: the line is older than the first one of the log.
pub fn has_lines(folder: &Path, heads: &[AuditHead]) -> io::Result<Vec<Option<bool>>> {
    let mut found: BTreeMap<u64, Option<String>> =
        heads.iter().map(|head| (head.number, None)).collect();
    let mut first = None;
    for segment in list_segments(folder)? {
        for line in BufReader::new(File::open(segment)?).split(b'\n') {
            let line = line?;
            let Some((number, line)) = std::str::from_utf8(&line)
                .ok()
                .and_then(|line| Some((number_in(line)?, line)))
            else {
                continue;
            };
            first.get_or_insert(number);
            if let (Some(digest), Some((_, is))) = (found.get_mut(&number), split_line(line)) {
                *digest = Some(is.to_owned());
            }
        }
    }
    let is_older = |head: &AuditHead| first.is_some_and(|first| head.number < first);
    let has = |head: &AuditHead| found[&head.number].as_ref() == Some(&head.digest);
    Ok(heads
        .iter()
        .map(|head| (!is_older(head)).then(|| has(head)))
        .collect())
}
