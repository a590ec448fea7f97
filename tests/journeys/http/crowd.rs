//! No client waits forever over HTTP when it or the proxy stops.

use journeys::{
    client::DEADLINE,
    fake::{LEGACY_VERSION, Step},
    house::{House, fake},
    site::Site,
};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use crate::{calling, house};

async fn open_site() -> (House, Site) {
    let server = fake("any")
        .tool("echo", Step::Echo)
        .tool("stuck", Step::UntilCancelled);
    let house = house([server]);
    house.indexed().await;
    let site = house.site().await;
    (house, site)
}

/// Returns the head of a request with a body of this length, which is not sent.
fn head(site: &Site, bytes: usize) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\naccept: \
         application/json\r\nconnection: close\r\ncontent-length: {bytes}\r\n\r\n",
        site.address()
    )
}

async fn connection_that_says(site: &Site, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(site.address()).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

async fn answer_on(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    let read = timeout(DEADLINE, stream.read_to_string(&mut answer)).await;
    read.expect("the request is answered").unwrap();
    answer
}

#[tokio::test]
async fn a_call_under_a_stopping_proxy_is_told_that_it_may_have_run() {
    let (house, site) = open_site().await;
    let clients = [
        site.web().initialize("journeys", LEGACY_VERSION).await,
        site.web().modern("journeys"),
    ];
    let calls = clients.map(|client| {
        tokio::spawn(async move {
            let call = calling("any/stuck", &json!({}));
            client.request("tools/call", call).await
        })
    });
    house.until_calls("any", 2).await;
    site.stop().await;
    for call in calls {
        let reply = call.await.unwrap();
        let error = reply.error();
        assert_eq!(error["code"], -32_603, "{error}");
        assert!(error.to_string().contains("may have run"), "{error}");
    }
    house.stops_clean().await;
}

#[tokio::test]
async fn a_client_that_closes_its_side_gets_its_answer() {
    let gate = tempfile::tempdir().unwrap();
    let open = gate.path().join("open");
    let steps = [Step::UntilExists(open.clone()), Step::Echo];
    let house = house([fake("any").tool("echo", steps)]);
    house.indexed().await;
    let site = house.site().await;
    let call = calling("any/echo", &json!({ "half": true }));
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call });
    let body = message.to_string();
    let request = format!("{}{body}", head(&site, body.len()));
    let mut stream = connection_that_says(&site, &request).await;
    stream.shutdown().await.unwrap();
    house.until_calls("any", 1).await;
    std::fs::write(open, "").unwrap();
    let answer = answer_on(stream).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("half"), "{answer}");
    site.stop().await;
    house.stops_clean().await;
}
