//! A link that can be cut, held and slowed: a TCP relay to one NATS server.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::Notify,
    time::sleep,
};

/// The state of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum LinkMode {
    Open,
    /// Bytes wait.
    Held,
    /// Each piece of bytes is late.
    Slow,
    /// Connections end, and new ones are refused.
    Cut,
}

const SLOW_BY: Duration = Duration::from_millis(40);

/// A relay that runs until it is dropped.
#[derive(Debug)]
pub(super) struct Relay {
    address: SocketAddr,
    mode: Arc<Mode>,
    listening: tokio::task::AbortHandle,
}

#[derive(Debug)]
struct Mode {
    now: AtomicU8,
    changed: Notify,
}

impl Relay {
    pub(super) async fn start(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("there is a free port");
        let address = listener.local_addr().expect("the socket is bound");
        let mode = Arc::new(Mode {
            now: AtomicU8::new(LinkMode::Open as u8),
            changed: Notify::new(),
        });
        let shared = Arc::clone(&mode);
        let listening = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let mode = Arc::clone(&shared);
                tokio::spawn(async move { pass(near, to, &mode).await });
            }
        });
        Self {
            address,
            mode,
            listening: listening.abort_handle(),
        }
    }

    pub(super) fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    pub(super) fn set(&self, mode: LinkMode) {
        self.mode.now.store(mode as u8, Ordering::SeqCst);
        self.mode.changed.notify_waiters();
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.listening.abort();
        self.set(LinkMode::Cut);
    }
}

impl Mode {
    fn is(&self, mode: LinkMode) -> bool {
        self.now.load(Ordering::SeqCst) == mode as u8
    }

    /// Waits while bytes are held. Returns false if the link is cut.
    async fn admits(&self) -> bool {
        loop {
            let changed = self.changed.notified();
            if self.is(LinkMode::Cut) {
                return false;
            }
            if !self.is(LinkMode::Held) {
                break;
            }
            changed.await;
        }
        if self.is(LinkMode::Slow) {
            sleep(SLOW_BY).await;
        }
        true
    }

    async fn cut(&self) {
        loop {
            let changed = self.changed.notified();
            if self.is(LinkMode::Cut) {
                return;
            }
            changed.await;
        }
    }
}

async fn pass(near: TcpStream, to: u16, mode: &Mode) {
    if mode.is(LinkMode::Cut) {
        return;
    }
    let Ok(far) = TcpStream::connect(("127.0.0.1", to)).await else {
        return;
    };
    let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
    tokio::select! {
        () = copy(near_in, far_out, mode) => {}
        () = copy(far_in, near_out, mode) => {}
        () = mode.cut() => {}
    }
}

async fn copy(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mode: &Mode,
) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count) = from.read(&mut buffer).await {
        if count == 0 || !mode.admits().await || to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}
