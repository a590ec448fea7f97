use std::slice;

use processes::pipes::{PipeWriter, split_socket};
use tokio::net::unix::pipe;

use super::*;
use crate::{Line, LineReader};

fn over_socket() -> (Arc<Outbox>, pipe::Receiver) {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().expect("a socket pair");
    let (_, sink) = split_socket(ours).expect("a socket");
    let (input, _) = split_socket(theirs).expect("a socket");
    (Outbox::new(Sink::Pipe(sink)), input)
}

#[tokio::test]
async fn lines_arrive_whole_and_in_order_through_a_slow_pipe() {
    let (outbox, theirs) = over_socket();
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
    assert_eq!(outbox.send(&[end]).await, Err(SendError::Closed));

    let mut reader = LineReader::new(theirs);
    let mut sizes = Vec::new();
    while let Some(Line::Whole(line)) = reader.next().await.expect("open") {
        sizes.push(line.len());
    }
    assert_eq!(sizes, [big.len(), big.len(), big.len(), 4]);
}

#[tokio::test]
async fn a_sender_waits_for_room_and_a_notification_is_dropped() {
    let (outbox, theirs) = over_socket();
    let big = Bytes::from(vec![b'x'; 2 * OUTBOX_BYTES_MAX]);
    outbox.send(&[big]).await.expect("open");
    assert!(!outbox.offer(&[Bytes::from_static(b"dropped\n")]));
    drop(theirs);
    let next = outbox.send(&[Bytes::from_static(b"never\n")]).await;
    assert_eq!(next, Err(SendError::Closed));
}

#[tokio::test]
async fn what_nobody_has_read_of_a_pipe_is_known() {
    let (sender, receiver) = pipe::pipe().expect("a pipe");
    let outbox = Outbox::new(Sink::Pipe(PipeWriter::Pipe(sender)));
    let line = Bytes::from_static(b"{}\n");
    let mut places = Vec::new();
    for _ in 0..3 {
        let sent = outbox.send_after(slice::from_ref(&line)).await;
        places.push(sent.expect("open"));
    }
    assert_eq!(places, [0, 3, 6]);
    // Reads the first line, and a byte of the second.
    receiver.readable().await.expect("open");
    assert_eq!(receiver.try_read(&mut [0; 4]).expect("bytes"), 4);
    // While the receiver is open, any line may still be read.
    assert!(places.iter().all(|place| !outbox.is_unread(*place)));
    drop(receiver);
    let unread = || {
        places
            .iter()
            .map(|place| outbox.is_unread(*place))
            .collect::<Vec<_>>()
    };
    assert_eq!(unread(), [false, false, true]);
    assert_eq!(outbox.send(&[line]).await, Err(SendError::Closed));
    assert!(outbox.is_gone());
    assert_eq!(unread(), [false, false, true]);
}

#[tokio::test]
async fn what_waits_for_a_full_pipe_is_unread() {
    let (sender, receiver) = pipe::pipe().expect("a pipe");
    let outbox = Outbox::new(Sink::Pipe(PipeWriter::Pipe(sender)));
    let big = Bytes::from(vec![b'x'; 1024 * 1024]);
    assert_eq!(outbox.send_after(slice::from_ref(&big)).await, Ok(0));
    assert_eq!(
        outbox.send_after(slice::from_ref(&big)).await,
        Ok(big.len() as u64)
    );
    receiver.readable().await.expect("open");
    assert_eq!(receiver.try_read(&mut [0; 1]).expect("bytes"), 1);
    drop(receiver);
    outbox.gone().await;
    assert!(!outbox.is_unread(0));
    assert!(outbox.is_unread(big.len() as u64));
}

#[tokio::test]
async fn a_write_that_completes_after_the_queue_was_given_up_counts_nothing() {
    let (outbox, _theirs) = over_socket();
    let big = Bytes::from(vec![b'x'; 2 * OUTBOX_BYTES_MAX]);
    outbox.send(&[big]).await.expect("open");
    outbox.give_up();
    outbox.written(1);
    assert_eq!(outbox.queue.lock().bytes, 0);
    outbox.drained().await;
}
