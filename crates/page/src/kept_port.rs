//! The port of the page, kept in the state folder, so that open tabs find the page of the next daemon.
//!
//! While no daemon runs, another user's program may listen on the port. A page that a person reloads then
//! could stay in the browser, so the port is used again only if tabs were open a moment before.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use tokio::{net::TcpListener, time::sleep};

use crate::limits::{KEPT_PORT_MAX, PORT_TRIES, PORT_WAIT};

/// The file with the port; its time is that of the last open tab.
#[derive(Debug, Clone)]
pub(crate) struct KeptPort(pub(crate) PathBuf);

impl KeptPort {
    /// Returns the port, if tabs were open a moment ago.
    pub(crate) fn read(&self) -> Option<u16> {
        let noted = fs::metadata(&self.0).and_then(|it| it.modified()).ok()?;
        // A time in the future is that of a clock that was set back.
        let is_fresh = noted.elapsed().is_ok_and(|age| age < KEPT_PORT_MAX);
        let text = fs::read_to_string(&self.0).ok().filter(|_| is_fresh)?;
        text.trim().parse().ok().filter(|port| *port > 0)
    }

    /// Notes that tabs are open. Without a state folder that can be written, the port is not kept.
    pub(crate) fn note(&self, port: u16) {
        if let Err(error) = files::write_whole(&self.0, format!("{port}\n").as_bytes()) {
            tracing::debug!(%error, "the port of the page is not kept");
        }
    }

    /// Listens on the kept port, or on another one. The daemon before may still end.
    pub(crate) async fn listen(&self) -> std::io::Result<TcpListener> {
        let kept = self.read();
        for _ in 0..kept.map_or(0, |_| PORT_TRIES) {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, kept.unwrap_or(0)));
            if let Ok(listener) = TcpListener::bind(address).await {
                return Ok(listener);
            }
            sleep(PORT_WAIT).await;
        }
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[tokio::test]
    async fn a_port_is_used_again_if_tabs_were_open_a_moment_ago() {
        let folder = tempfile::tempdir().unwrap();
        let kept = KeptPort(folder.path().join("page.port"));
        assert_eq!(kept.read(), None);
        let listener = kept.listen().await.unwrap();
        let address = listener.local_addr().unwrap();
        assert!(address.ip().is_loopback(), "other machines do not reach it");
        let port = address.port();
        kept.note(port);
        drop(listener);
        let again = kept.listen().await.unwrap();
        assert_eq!(again.local_addr().unwrap().port(), port);
        // It is taken.
        let other = kept.listen().await.unwrap();
        assert_ne!(other.local_addr().unwrap().port(), port);
        let file = fs::File::options().write(true).open(&kept.0).unwrap();
        file.set_modified(SystemTime::now() - KEPT_PORT_MAX)
            .unwrap();
        assert_eq!(kept.read(), None);
        file.set_modified(SystemTime::now() + KEPT_PORT_MAX)
            .unwrap();
        assert_eq!(kept.read(), None);
    }
}
