//! The streamable HTTP server.

mod crowd;
mod hostile;
mod keys;
mod metrics;
mod restart;
mod resumed;
mod strangers;
mod transport;
