//! A proxy that serves over HTTP, from its start to its end.

use std::{
    net::{Ipv4Addr, SocketAddr},
    process::Stdio,
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, ChildStderr, Command},
    sync::oneshot,
    time::timeout,
};

use crate::{client::DEADLINE, house::House, processes::terminate, web::Web};

/// A proxy that serves over HTTP.
#[derive(Debug)]
pub struct Site {
    child: Child,
    url: String,
    stderr: Arc<Mutex<String>>,
}

impl House {
    /// Starts `serve --http` at a free port of this machine and waits until it listens.
    pub async fn site(&self) -> Site {
        self.site_at((Ipv4Addr::LOCALHOST, 0).into()).await
    }

    /// Starts `serve --http` on this address and waits until it listens.
    pub async fn site_at(&self, address: SocketAddr) -> Site {
        let alone = if self.has_daemon() {
            None
        } else {
            Some("--standalone")
        };
        let address = address.to_string();
        let args = ["serve", "--http", &address].into_iter().chain(alone);
        Site::start(self.command(args)).await
    }
}

impl Site {
    /// Starts the proxy and waits until it prints its address.
    pub async fn start(mut command: Command) -> Self {
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the proxy can be started");
        let stderr = Arc::new(Mutex::new(String::new()));
        let (sender, url) = oneshot::channel();
        let output = child.stderr.take().expect("stderr is piped");
        tokio::spawn(keep(output, Arc::clone(&stderr), sender));
        let url = timeout(DEADLINE, url)
            .await
            .expect("the proxy starts in time");
        let url = url.unwrap_or_else(|_| panic!("the proxy does not listen: {}", said(&stderr)));
        Self { child, url, stderr }
    }

    /// Returns the URL for a client's configuration.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the address of the server.
    pub fn address(&self) -> SocketAddr {
        let (_, rest) = self.url.split_once("://").expect("the address is a URL");
        let (address, _) = rest.split_once('/').expect("the URL has a path");
        address.parse().expect("the authority is an address")
    }

    /// Returns a client that is configured with the address alone.
    pub fn web(&self) -> Web {
        Web::new(self.address())
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.child.id().expect("the process was not waited for yet")
    }

    /// Returns the log so far.
    pub fn stderr(&self) -> String {
        said(&self.stderr)
    }

    /// Returns the number of log lines that contain this text.
    pub fn logged(&self, piece: &str) -> usize {
        let lines = self.stderr();
        lines.lines().filter(|line| line.contains(piece)).count()
    }

    /// Sends SIGKILL, as a system short of memory does.
    pub async fn kill(mut self) {
        self.child.kill().await.expect("the process is our child");
    }

    /// Sends SIGTERM and expects exit code 0.
    pub async fn stop(self) {
        terminate(self.pid());
        self.ends().await;
    }

    /// Waits for the process to exit and expects exit code 0.
    pub async fn ends(mut self) {
        let ended = timeout(DEADLINE, self.child.wait()).await;
        let status = ended
            .expect("the proxy exits in time")
            .expect("the process is our child");
        assert_eq!(status.code(), Some(0), "{}", self.stderr());
    }
}

async fn keep(output: ChildStderr, kept: Arc<Mutex<String>>, url: oneshot::Sender<String>) {
    let mut url = Some(url);
    let mut lines = BufReader::new(output).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let found = line.strip_prefix("serving MCP at ").map(str::to_owned);
        let mut kept = kept.lock();
        kept.push_str(&line);
        kept.push('\n');
        drop(kept);
        if let Some((sender, found)) = found.and_then(|found| Some((url.take()?, found))) {
            drop(sender.send(found));
        }
    }
}

fn said(stderr: &Mutex<String>) -> String {
    stderr.lock().clone()
}
