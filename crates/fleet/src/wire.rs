//! The protocol as rmcp speaks it to a server: handshake, pings, whatever the server asks of us.
//! The files below are the only ones of this room that name its message types.

mod handshake;
mod http;
mod listen;
mod obstacle;
mod pipes;
mod remote;
mod sse;
mod streamable;

pub(crate) use handshake::{HandshakeError, OwnMeta, Service, open_session, probe_session};
pub(crate) use http::Site;
pub(crate) use obstacle::Obstacle;
pub(crate) use pipes::PipeTransport;
pub(crate) use remote::Remote;
