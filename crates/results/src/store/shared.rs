//! Kept results on other machines.

use std::{fmt, pin::Pin};

use bytes::Bytes;

/// A result that is being fetched; `None`: there is none.
pub type Fetching<'a> = Pin<Box<dyn Future<Output = Option<Bytes>> + Send + 'a>>;

/// A store of kept results that several machines share.
pub trait SharedResults: fmt::Debug + Send + Sync {
    /// Copies the file of a result. Returns at once.
    fn share(&self, handle: &str, content: Bytes);

    /// Reads the file of a result that another machine kept.
    fn fetch<'a>(&'a self, handle: &'a str) -> Fetching<'a>;
}
