use super::*;
use crate::{Line, LineReader};

#[tokio::test]
async fn lines_arrive_whole_and_in_order_through_a_slow_pipe() {
    let (ours, theirs) = tokio::net::UnixStream::pair().expect("a socket pair");
    let outbox = Outbox::new(Sink::Socket(ours));
    let big = Bytes::from(vec![b'x'; 3 * 1024 * 1024]);
    let end = Bytes::from_static(b"\n");
    for _ in 0..3 {
        outbox
            .send(&[big.clone(), end.clone()])
            .await
            .expect("open");
    }
    outbox
        .send(&[Bytes::from_static(b"last\n")])
        .await
        .expect("open");
    outbox.close();
    assert_eq!(outbox.send(&[end]).await, Err(Closed));

    let mut reader = LineReader::new(theirs);
    let mut sizes = Vec::new();
    while let Some(Line::Whole(line)) = reader.next().await.expect("open") {
        sizes.push(line.len());
    }
    assert_eq!(sizes, [big.len(), big.len(), big.len(), 4]);
}

#[tokio::test]
async fn a_sender_waits_for_room_and_a_notification_is_dropped() {
    let (ours, theirs) = tokio::net::UnixStream::pair().expect("a socket pair");
    let outbox = Outbox::new(Sink::Socket(ours));
    let big = Bytes::from(vec![b'x'; 2 * OUTBOX_BYTES_MAX]);
    outbox.send(&[big]).await.expect("open");
    assert!(!outbox.offer(&[Bytes::from_static(b"dropped\n")]));
    drop(theirs);
    let next = outbox.send(&[Bytes::from_static(b"never\n")]).await;
    assert_eq!(next, Err(Closed));
}
