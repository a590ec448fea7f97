//! MCP over streamable HTTP: many clients, both protocol eras, with sessions and without.
//!
//! `/mcp` is for clients; `/api/v1/tools` for programs that look for tools; `/healthz`, `/readyz` and, if configured, `/metrics` are for monitoring. A
//! request passes the gate (`Host`, `Origin`, token), then `mcp.rs` passes its message to a
//! [`Session`](gateway::Session), which answers in bytes as it does on stdio.

#![warn(missing_docs)]

mod body;
mod caller_login;
mod complaints;
mod endpoint;
mod event_id;
mod gate;
mod guarding;
mod headers;
mod http_error;
mod mcp;
mod open_session;
mod peer;
mod programs;
mod reply;
mod resume;
mod routes;
mod service;
mod session_id;
mod session_key;
mod sessions;
mod settings;
mod tokens;

#[cfg(test)]
mod tests;

use std::{io, net::SocketAddr, sync::Arc};

use anyhow::Context as _;
use gateway::Gateway;
use http_core::Server;
use service::Service;
use tokio::{net::TcpListener, task::spawn_blocking};
use tokio_util::sync::CancellationToken;

pub use endpoint::Endpoint;
pub use settings::{
    Guard, HttpSettings, Introspection, Limits, Listen, NoAddress, SUBJECT_CHARS_MAX, TOKEN_HINT,
    Tls,
};

/// A bound socket: clients may connect, and wait until [`Bound::serve`] is called.
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
    settings: Endpoint,
}

/// Binds the address, or returns the reason why it is not available, with a next step.
pub async fn bind(settings: &Endpoint) -> anyhow::Result<Bound> {
    match try_bind(settings).await {
        Ok(bound) => Ok(bound),
        Err(error) => Err(explain_no_address(settings.listen, error).await),
    }
}

/// Binds the address. For a caller that tries again; [`bind`] explains a failure.
pub async fn try_bind(settings: &Endpoint) -> io::Result<Bound> {
    let listen = settings.listen;
    let listener = TcpListener::bind((listen.ip, listen.port)).await?;
    Ok(Bound {
        address: listener.local_addr()?,
        listener,
        settings: settings.clone(),
    })
}

async fn explain_no_address(listen: Listen, error: io::Error) -> anyhow::Error {
    let what = format!("cannot listen on {listen}");
    if error.kind() != io::ErrorKind::AddrInUse {
        return anyhow::Error::new(error).context(what);
    }
    // Reads the descriptors of all processes.
    let finding = spawn_blocking(move || processes::find_listener(listen.port));
    let holder = match finding.await.ok().flatten() {
        Some((pid, name)) if pid == std::process::id() => format!("this process, {name}"),
        Some((pid, name)) => format!("pid {pid}, {}", printable::one_line_of(&name, 16)),
        None => "another process".to_owned(),
    };
    anyhow::anyhow!(
        "{what}: {holder} listens there; stop it, or change `http.listen`, or the address of `serve --http`"
    )
}

/// Uses a socket that already listens at the address.
pub fn bind_inherited(socket: std::net::TcpListener, settings: &Endpoint) -> anyhow::Result<Bound> {
    let listener = TcpListener::from_std(socket).context("cannot use an inherited socket")?;
    let (address, listen) = (listener.local_addr()?, settings.listen);
    if (address.ip(), address.port()) != (listen.ip, listen.port) {
        anyhow::bail!("the socket listens on {address}, not on {listen}");
    }
    Ok(Bound {
        listener,
        address,
        settings: settings.clone(),
    })
}

impl Bound {
    /// Returns the address that it listens on; for port 0, with the port that was assigned.
    pub fn listen(&self) -> Listen {
        Listen {
            ip: self.address.ip(),
            port: self.address.port(),
        }
    }

    /// Returns the URL that a client's configuration would name.
    pub fn url(&self) -> String {
        format!("{}{}/mcp", self.settings.gate.guard.scheme, self.address)
    }

    /// Serves until `stop`, then ends every session. The caller stops the servers.
    pub async fn serve(self, gateway: Arc<Gateway>, stop: CancellationToken) {
        let (limits, tls) = (self.settings.limits, self.settings.tls.clone());
        let service = Arc::new(Service::new(gateway, self.settings, stop.clone()));
        let watching = tokio::spawn(sessions::expire(Arc::clone(&service.sessions)));
        let server = Server::new(Arc::clone(&service), limits.of_connections(), tls);
        let sockets = [self.listener];
        server.accept(&sockets, &stop).await;
        watching.abort();
        drop(sockets);
        service.sessions.end_all().await;
        server.end().await;
    }
}
