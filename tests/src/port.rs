//! Ports that are kept for a server of a test.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::TcpSocket;

/// A port of 127.0.0.1 on which a server of the test listens later, several times, or never.
///
/// A socket that is bound and does not listen keeps the port: the system gives it to no other
/// program that asks for a free port, and to no outgoing connection. A server that names the port
/// and sets `SO_REUSEADDR`, as servers on Unix do, can listen on it, also after a predecessor was
/// killed. A port that was only looked up and released may belong to another test by then.
#[derive(Debug)]
pub struct ReservedPort(TcpSocket);

impl ReservedPort {
    /// Reserves a free port until the value is dropped.
    pub fn new() -> Self {
        let reserve = || {
            let socket = TcpSocket::new_v4()?;
            socket.set_reuseaddr(true)?;
            socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
            std::io::Result::Ok(socket)
        };
        Self(reserve().expect("there is a free port"))
    }

    /// Returns the address.
    pub fn address(&self) -> SocketAddr {
        self.0.local_addr().expect("the socket is bound")
    }

    /// Returns the number of the port.
    pub fn number(&self) -> u16 {
        self.address().port()
    }
}

impl Default for ReservedPort {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    #[tokio::test]
    async fn servers_listen_one_after_another_on_a_port_that_nothing_else_gets() {
        let port = ReservedPort::new();
        for _ in 0..3 {
            let refused = TcpStream::connect(port.address()).await.unwrap_err();
            assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
            let server = TcpListener::bind(port.address()).await.unwrap();
            let client = TcpStream::connect(port.address()).await.unwrap();
            let accepted = server.accept().await.unwrap();
            // The side that closes first leaves the port in use for a minute.
            drop(server);
            drop(accepted);
            drop(client);
        }
        let without_reuse = TcpSocket::new_v4().unwrap();
        let taken = without_reuse.bind(port.address()).unwrap_err();
        assert_eq!(taken.kind(), std::io::ErrorKind::AddrInUse);
    }
}
