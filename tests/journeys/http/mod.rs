//! The streamable HTTP server.

mod callers;
mod crowd;
mod hostile;
mod keys;
mod metrics;
mod programs;
mod restart;
mod resumed;
mod strangers;
mod tasks;
mod transport;
