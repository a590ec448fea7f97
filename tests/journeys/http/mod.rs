//! Our side of streamable HTTP.

mod crowd;
mod hostile;
mod keys;
mod strangers;
mod transport;
