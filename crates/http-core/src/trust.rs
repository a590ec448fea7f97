//! The HTTP clients of servers and logins. The certificates that they trust are read once: the clients of
//! many callers would each read and keep all of them.

use std::{sync::OnceLock, time::Duration};

use reqwest::{Client, ClientBuilder};
use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt as _;

/// The time after which an unused connection is closed. Servers of Node.js and uvicorn close theirs after
/// 5 s, and a request that they receive at that moment fails, although it may have run.
const IDLE_CONNECTION_TIME: Duration = Duration::from_secs(4);

/// Begins an HTTP client that trusts what the system trusts. All clients share the certificates that the
/// first one read.
pub fn http_client_builder() -> ClientBuilder {
    static CONFIG: OnceLock<Option<ClientConfig>> = OnceLock::new();
    let builder = Client::builder().pool_idle_timeout(IDLE_CONNECTION_TIME);
    match CONFIG.get_or_init(read_config) {
        Some(config) => builder.tls_backend_preconfigured(config.clone()),
        // The client reports the reason when it is built.
        None => builder,
    }
}

fn read_config() -> Option<ClientConfig> {
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let config = ClientConfig::builder_with_provider(provider.into());
    let config = config.with_safe_default_protocol_versions().ok()?;
    let config = config.with_platform_verifier().ok()?;
    Some(config.with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
        sync::mpsc,
    };

    use super::*;

    /// Answers each request on each connection, and sends the number of its connection.
    async fn serve(listener: TcpListener, seen: mpsc::Sender<usize>) {
        for number in 0.. {
            let (mut stream, _) = listener.accept().await.unwrap();
            let seen = seen.clone();
            tokio::spawn(async move {
                let mut head = [0; 4096];
                while stream.read(&mut head).await.is_ok_and(|count| count > 0) {
                    seen.send(number).await.unwrap();
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                    stream.write_all(answer).await.unwrap();
                }
            });
        }
    }

    #[tokio::test]
    async fn a_connection_is_reused_until_a_server_may_close_it() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let (sender, mut seen) = mpsc::channel(8);
        let server = tokio::spawn(serve(listener, sender));
        let client = http_client_builder().no_proxy().build().unwrap();
        let after_idle_time = IDLE_CONNECTION_TIME + Duration::from_millis(200);
        for wait in [Duration::ZERO, Duration::from_millis(300), after_idle_time] {
            tokio::time::sleep(wait).await;
            client.get(&url).send().await.unwrap();
        }
        let mut connections = Vec::new();
        while let Ok(number) = seen.try_recv() {
            connections.push(number);
        }
        server.abort();
        assert_eq!(connections, [0, 0, 1]);
    }
}
