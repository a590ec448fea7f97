//! A client that has closed its sending side and waits for the response.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, ReadBuf},
    time::{Sleep, sleep},
};

use crate::places::HeldPlace;

/// The input of a connection, whose end is hidden while the connection is being served, within a limit.
#[derive(Debug)]
pub(super) struct HalfClosing<S> {
    stream: S,
    place: Arc<HeldPlace>,
    limit: Duration,
    /// Runs once the input has ended.
    ended: Option<Pin<Box<Sleep>>>,
}

impl<S> HalfClosing<S> {
    pub(super) fn new(stream: S, place: Arc<HeldPlace>, limit: Duration) -> Self {
        Self {
            stream,
            place,
            limit,
            ended: None,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for HalfClosing<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.ended.is_none() {
            let before = buffer.filled().len();
            ready!(Pin::new(&mut this.stream).poll_read(context, buffer))?;
            if buffer.filled().len() > before || buffer.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
        }
        let limit = this.limit;
        let ended = this.ended.get_or_insert_with(|| Box::pin(sleep(limit)));
        if this.place.is_busy() {
            ready!(ended.as_mut().poll(context));
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, duplex},
        time::Instant,
    };

    use super::*;
    use crate::places::{HolderState, PlaceOwner, Places};

    const LIMIT: Duration = Duration::from_secs(5);

    #[tokio::test(start_paused = true)]
    async fn the_end_of_input_waits_for_an_answer_under_way_and_not_for_ever() {
        let places = Places::new(2);
        let waited = async |state| {
            let place = places.enter(PlaceOwner::Here, state).unwrap().place;
            let (ours, theirs) = duplex(8);
            drop(theirs);
            let began = Instant::now();
            let mut ours = HalfClosing::new(ours, Arc::new(place), LIMIT);
            assert_eq!(ours.read(&mut [0; 4]).await.unwrap(), 0);
            began.elapsed()
        };
        assert_eq!(waited(HolderState::Idle).await, Duration::ZERO);
        assert_eq!(waited(HolderState::Busy).await, LIMIT);
    }
}
