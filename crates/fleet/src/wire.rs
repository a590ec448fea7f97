//! The protocol parts that rmcp implements: the handshake, pings, and requests of the server. Only the
//! modules below use the message types of rmcp.

mod address;
mod handshake;
mod http;
mod line_connection;
mod listen;
mod pipes;
mod remote;
mod sse;
mod streamable;

pub(crate) use address::AddressSource;
pub(crate) use handshake::{HandshakeError, open_session, probe_session};
pub(crate) use http::Site;
pub(crate) use line_connection::LineConnection;
pub(crate) use pipes::PipeTransport;
pub(crate) use remote::open_remote;
