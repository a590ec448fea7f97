//! The stream of changes: a snapshot, then the differences, for every open tab.
//!
//! One task looks for changes while a tab is open, and ends with the last of them.

use std::sync::Arc;

use bytes::Bytes;
use futures::{Stream, stream};
use tokio::{
    sync::broadcast::{self, error::RecvError},
    time::{MissedTickBehavior, interval, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    collect::Builder,
    error::{ApiError, OPEN},
    hub::{Current, Message, line},
    limits::{ALIVE_EVERY, CHANGES_WAITING_MAX, LOOK_EVERY, STREAMS_MAX},
    page_state::PageState,
};

/// Returns the lines for one more tab, until its token ends.
pub(crate) async fn follow(
    page: Arc<PageState>,
    gone: CancellationToken,
) -> Result<impl Stream<Item = Bytes> + Send + 'static, ApiError> {
    let (first, n, receiver) = join(&page).await?;
    let tab = Tab {
        attended: (page.daemon.attend)(),
        page,
        gone,
        receiver,
        n,
        first: Some(first),
        is_over: false,
    };
    Ok(stream::unfold(tab, async |mut tab| {
        let line = tab.next().await?;
        Some((line, tab))
    }))
}

async fn join(
    page: &Arc<PageState>,
) -> Result<(Bytes, u64, broadcast::Receiver<(u64, Bytes)>), ApiError> {
    let mut current = page.hub.0.lock().await;
    if current.is_none() {
        let shared = Arc::clone(page);
        let building = tokio::task::spawn_blocking(move || {
            let mut builder = Builder::new(&shared);
            let state = builder.build();
            (builder, state)
        });
        let (builder, state) = building.await.map_err(anyhow::Error::from)?;
        let (sender, _) = broadcast::channel(CHANGES_WAITING_MAX);
        *current = Some(Current {
            n: 1,
            state,
            sender,
        });
        tokio::spawn(look(Arc::clone(page), builder));
    }
    let current = current.as_ref().expect("it was set right above");
    if current.sender.receiver_count() >= STREAMS_MAX {
        let why = format!("{STREAMS_MAX} tabs are open already");
        let status = hyper::StatusCode::TOO_MANY_REQUESTS;
        let error = ApiError::new(status, "too_many_streams", why);
        return Err(error.next("close a tab"));
    }
    let receiver = current.sender.subscribe();
    Ok((current.snapshot(), current.n, receiver))
}

/// Looks for changes until the last tab is closed.
async fn look(page: Arc<PageState>, mut builder: Builder) {
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        let building = tokio::task::spawn_blocking(move || {
            let state = builder.build_whole();
            (builder, state)
        });
        // Not under the lock: another tab opens meanwhile.
        let built = building.await;
        let mut current = page.hub.0.lock().await;
        let is_followed = |it: &&mut Current| it.sender.receiver_count() > 0;
        let (Some(now), Ok((kept, state))) = (current.as_mut().filter(is_followed), built) else {
            *current = None;
            return;
        };
        builder = kept;
        let changes = now.state.changes_to(&state);
        if !changes.is_empty() {
            now.n += 1;
            now.state = state;
            let _ = now
                .sender
                .send((now.n, line(&Message::Change { n: now.n, changes })));
        }
    }
}

/// One open tab.
struct Tab {
    page: Arc<PageState>,
    gone: CancellationToken,
    receiver: broadcast::Receiver<(u64, Bytes)>,
    /// The number of the last line.
    n: u64,
    /// The line to send before anything else.
    first: Option<Bytes>,
    is_over: bool,
    /// The daemon does not end as idle meanwhile.
    #[expect(dead_code, reason = "it is kept until the tab is closed")]
    attended: Box<dyn Send + Sync>,
}

impl Tab {
    async fn next(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        let stop = self.page.daemon.stop.clone();
        let received = tokio::select! {
            () = self.gone.cancelled() => return Some(self.end("the session has ended")),
            () = stop.cancelled() => return Some(self.end("the daemon stops")),
            received = timeout(ALIVE_EVERY, self.receiver.recv()) => received,
        };
        match received {
            Err(_) => Some(line(&Message::Alive { n: self.n })),
            Ok(Ok((n, change))) => {
                self.n = n;
                Some(change)
            }
            Ok(Err(RecvError::Lagged(_))) => Some(self.skip().await),
            Ok(Err(RecvError::Closed)) => Some(self.end("the daemon stops")),
        }
    }

    /// Goes on with a snapshot in place of the changes that were lost.
    async fn skip(&mut self) -> Bytes {
        let gap = line(&Message::Gap { n: self.n });
        let current = self.page.hub.0.lock().await;
        if let Some(current) = &*current {
            self.receiver = current.sender.subscribe();
            self.n = current.n;
            self.first = Some(current.snapshot());
        }
        gap
    }

    fn end(&mut self, message: &str) -> Bytes {
        self.is_over = true;
        line(&Message::End {
            message: message.to_owned(),
            next_step: OPEN.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::pin::{Pin, pin};

    use daemon::{page::PageDaemon, status::DaemonStatus};
    use futures::{FutureExt as _, StreamExt as _};
    use gateway::{Gateway, Settings};
    use serde_json::Value;

    use super::*;
    use crate::configure::{Changed, ConfigChange, Configure, Refused};

    struct Fixed;

    impl Configure for Fixed {
        fn change(&self, _: &ConfigChange, _: bool) -> Result<Changed, Refused> {
            Err(Refused::NotFound("nothing changes".to_owned()))
        }
    }

    fn page(folder: &tempfile::TempDir) -> Arc<PageState> {
        let settings = Settings::in_folder(folder.path().join("state"));
        let daemon = PageDaemon {
            gateway: Gateway::new(settings).unwrap(),
            status: Arc::new(DaemonStatus::default),
            attend: Arc::new(|| Box::new(())),
            stop: CancellationToken::new(),
            settle: Arc::new(|| futures::future::ready(true).boxed()),
        };
        Arc::new(PageState::new(daemon, Arc::new(Fixed)))
    }

    async fn kind_of(tab: &mut Pin<&mut impl Stream<Item = Bytes>>) -> String {
        let line: Value = serde_json::from_slice(&tab.next().await.unwrap()).unwrap();
        line["type"].as_str().unwrap().to_owned()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn nothing_looks_for_changes_once_the_last_tab_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let page = page(&folder);
        let gone = CancellationToken::new();
        {
            let first = follow(Arc::clone(&page), gone.clone()).await.unwrap();
            let second = follow(Arc::clone(&page), gone.clone()).await.unwrap();
            let (mut first, mut second) = (pin!(first), pin!(second));
            assert_eq!(kind_of(&mut first).await, "snapshot");
            assert_eq!(kind_of(&mut second).await, "snapshot");
            assert!(page.hub.0.lock().await.is_some());
        }
        while page.hub.0.lock().await.is_some() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_tab_that_does_not_read_gets_a_snapshot_in_place_of_changes() {
        let folder = tempfile::tempdir().unwrap();
        let page = page(&folder);
        let gone = CancellationToken::new();
        let tab = follow(Arc::clone(&page), gone.clone()).await.unwrap();
        let mut tab = pin!(tab);
        {
            let mut current = page.hub.0.lock().await;
            let current = current.as_mut().unwrap();
            for _ in 0..=CHANGES_WAITING_MAX {
                current.n += 1;
                let changes = Vec::new();
                let change = line(&Message::Change {
                    n: current.n,
                    changes,
                });
                current.sender.send((current.n, change)).unwrap();
            }
        }
        assert_eq!(kind_of(&mut tab).await, "snapshot");
        assert_eq!(kind_of(&mut tab).await, "gap");
        assert_eq!(kind_of(&mut tab).await, "snapshot");
        gone.cancel();
        let mut last = kind_of(&mut tab).await;
        while last == "change" {
            last = kind_of(&mut tab).await;
        }
        assert_eq!(last, "end");
        assert!(tab.next().await.is_none());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn one_tab_too_many_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let page = page(&folder);
        let mut tabs = Vec::new();
        for _ in 0..STREAMS_MAX {
            let gone = CancellationToken::new();
            tabs.push(follow(Arc::clone(&page), gone).await.unwrap());
        }
        let more = follow(Arc::clone(&page), CancellationToken::new()).await;
        assert_eq!(more.err().unwrap().code, "too_many_streams");
        tabs.pop();
        assert!(follow(page, CancellationToken::new()).await.is_ok());
    }
}
