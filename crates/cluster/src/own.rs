//! Data of this node that others ask for.

use std::fmt;

use bytes::Bytes;
use fleet::LogHead;
use futures::future::BoxFuture;

/// Data of this node that other nodes ask for, and of theirs that it keeps.
pub trait OwnData: fmt::Debug + Send + Sync {
    /// Reads a kept result of this node. `None`: it has none.
    fn read_kept(&self, handle: String) -> BoxFuture<'static, Option<Bytes>>;

    /// Returns the newest call in the audit log of this node.
    fn log_head(&self) -> Option<LogHead>;

    /// Writes the head of another node's audit log into the log of this one.
    fn note_head(&self, node: &str, head: LogHead);

    /// Returns the newest head that was written for this node.
    fn find_head(&self, node: String) -> BoxFuture<'static, Option<LogHead>>;
}

/// No data, for a process that keeps none.
#[derive(Debug, Clone, Copy)]
pub struct NoData;

impl OwnData for NoData {
    fn read_kept(&self, _: String) -> BoxFuture<'static, Option<Bytes>> {
        Box::pin(std::future::ready(None))
    }

    fn log_head(&self) -> Option<LogHead> {
        None
    }

    fn note_head(&self, _: &str, _: LogHead) {}

    fn find_head(&self, _: String) -> BoxFuture<'static, Option<LogHead>> {
        Box::pin(std::future::ready(None))
    }
}
