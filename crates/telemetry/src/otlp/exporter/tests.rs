use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpListener,
};

use super::{Exporter, QUEUE_MAX};
use crate::otlp::{open_span::OpenSpan, sending::Collector, span::SpanKind};

/// Makes an exporter to this address, with a header that the collector receives.
fn exporter_to(url: &str) -> Arc<Exporter> {
    let url = url.to_owned();
    Arc::new(Exporter::new(Box::new(move || {
        let headers = [("X-Key".to_owned(), "s3cret".to_owned())];
        let collector = Collector::new(&url, &headers);
        Box::pin(async { collector })
    })))
}

fn record(exporter: &Arc<Exporter>, count: usize) {
    for _ in 0..count {
        let mut span = OpenSpan::begin(exporter, None).unwrap();
        span.set_name("tools/call echo".to_owned(), SpanKind::Client);
    }
}

/// Starts a collector that gives the same response to every request. Returns its address, and the heads
/// and bodies of the requests.
async fn collector(answer: &'static str) -> (String, Arc<Mutex<Vec<(String, Value)>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let came = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&came);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut stream = BufReader::new(stream);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                stream.read_line(&mut head).await.unwrap();
            }
            let head = head.to_ascii_lowercase();
            let (_, length) = head.split_once("content-length: ").unwrap();
            let length = length.lines().next().unwrap().parse().unwrap();
            let mut body = vec![0; length];
            stream.read_exact(&mut body).await.unwrap();
            kept.lock()
                .push((head, serde_json::from_slice(&body).unwrap()));
            stream.write_all(answer.as_bytes()).await.unwrap();
            let _ = stream.shutdown().await;
        }
    });
    (url, came)
}

#[tokio::test]
async fn what_was_recorded_is_sent_before_the_end() {
    let answer = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
    let (url, came) = collector(answer).await;
    let exporter = exporter_to(&url);
    record(&exporter, 3);
    exporter.finish().await;
    let delivery = exporter.delivery();
    assert_eq!((delivery.sent, delivery.dropped), (3, 0));
    assert!(delivery.last.is_some() && delivery.failure.is_none());
    assert_eq!(delivery.to, Some(url));
    let came = came.lock();
    let [(head, body)] = &came[..] else {
        panic!("{came:?}");
    };
    assert!(head.starts_with("post /v1/traces http/1.1\r\n"), "{head}");
    assert!(head.contains("x-key: s3cret") && head.contains("content-type: application/json"));
    let spans = &body["resourceSpans"][0]["scopeSpans"][0]["spans"];
    assert_eq!(spans.as_array().unwrap().len(), 3);
    drop(came);
    record(&exporter, 1);
    assert_eq!(exporter.delivery().dropped, 1);
}

#[tokio::test]
async fn what_a_collector_refuses_is_dropped_and_not_sent_again() {
    let answer = "HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    let (url, came) = collector(answer).await;
    let exporter = exporter_to(&url);
    record(&exporter, 2);
    exporter.finish().await;
    let delivery = exporter.delivery();
    assert_eq!((delivery.sent, delivery.dropped), (0, 2));
    assert_eq!(delivery.failure.as_deref(), Some("HTTP 400 Bad Request"));
    assert_eq!(came.lock().len(), 1);
}

#[tokio::test]
async fn while_the_collector_is_away_what_finds_no_room_is_dropped() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", gone.local_addr().unwrap());
    drop(gone);
    let exporter = exporter_to(&url);
    record(&exporter, QUEUE_MAX + 100);
    assert_eq!(exporter.delivery().dropped, 100);
    exporter.finish().await;
    let delivery = exporter.delivery();
    assert_eq!(delivery.sent, 0);
    assert_eq!(delivery.dropped, QUEUE_MAX as u64 + 100);
    assert!(delivery.failure.is_some());
}

#[tokio::test]
async fn what_is_lacking_to_find_the_collector_is_told() {
    let why = || "secret `traces` is not set".to_owned();
    let exporter = Exporter::new(Box::new(move || Box::pin(async move { Err(why()) })));
    let exporter = Arc::new(exporter);
    record(&exporter, 1);
    exporter.finish().await;
    let delivery = exporter.delivery();
    assert_eq!((delivery.dropped, delivery.to), (1, None));
    assert_eq!(delivery.failure, Some(why()));
}
