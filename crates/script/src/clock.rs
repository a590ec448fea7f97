//! The time limit of a script.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

/// The clock of one script. It is paused while a question to the user is open.
#[derive(Debug)]
pub struct Clock {
    time: Mutex<Time>,
    moved: Notify,
}

#[derive(Debug)]
struct Time {
    left: Duration,
    running_since: Instant,
    /// The number of open questions; the clock runs while there are none.
    stops: usize,
}

impl Clock {
    /// Creates a clock that starts now.
    pub fn start(limit: Duration) -> Arc<Self> {
        let time = Time {
            left: limit,
            running_since: Instant::now(),
            stops: 0,
        };
        Arc::new(Self {
            time: Mutex::new(time),
            moved: Notify::new(),
        })
    }

    /// Pauses the clock until the returned value is dropped.
    pub fn stop(self: &Arc<Self>) -> impl Drop + use<> {
        let mut time = self.time.lock();
        if time.stops == 0 {
            time.left = time.left.saturating_sub(time.running_since.elapsed());
        }
        time.stops += 1;
        self.moved.notify_one();
        Stopped(Arc::clone(self))
    }

    pub(crate) async fn run_out(&self) {
        loop {
            let end = {
                let time = self.time.lock();
                (time.stops == 0).then(|| time.running_since + time.left)
            };
            match end {
                None => self.moved.notified().await,
                Some(end) => tokio::select! {
                    () = sleep_until(end) => return,
                    () = self.moved.notified() => {}
                },
            }
        }
    }
}

struct Stopped(Arc<Clock>);

impl Drop for Stopped {
    fn drop(&mut self) {
        let mut time = self.0.time.lock();
        time.stops -= 1;
        time.running_since = Instant::now();
        self.0.moved.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_stands_as_long_as_anything_is_asked() {
        let second = Duration::from_secs(1);
        let began = Instant::now();
        let clock = Clock::start(second * 10);
        let asks = async |from: u32, to: u32| {
            sleep_until(began + second * from).await;
            let _stopped = clock.stop();
            sleep_until(began + second * to).await;
        };
        tokio::join!(asks(2, 50), asks(40, 60), asks(61, 62), clock.run_out());
        // Two seconds before the first question, one between, seven after the last.
        assert_eq!(began.elapsed(), second * 69);
    }
}
