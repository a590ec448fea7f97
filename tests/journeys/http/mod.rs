//! Our side of streamable HTTP.

mod crowd;
mod hostile;
mod keys;
mod metrics;
mod restart;
mod resumed;
mod strangers;
mod transport;
