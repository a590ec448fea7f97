//! `/metrics`: Prometheus metrics for clients with access, if the configuration enables them.

use std::time::Duration;

use journeys::{
    client::DEADLINE,
    fake::{LEGACY_VERSION, Step},
    house::fake,
    site::Site,
    web::Web,
};
use serde_json::json;
use tokio::time::{interval, timeout};

use crate::{house, house_with_daemon};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Returns the value of a sample; `None` if there is no such series.
fn figure(text: &str, series: &str) -> Option<f64> {
    let value = |line: &str| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok();
    text.lines().find_map(value)
}

async fn scraped(web: &Web) -> String {
    let answer = web.ask("GET", "/metrics", "").await;
    assert_eq!(answer.status, 200);
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    assert_eq!(answer.header("content-type"), kind);
    answer.text().await
}

async fn until_counted(web: &Web, series: &str) -> String {
    let mut looks = interval(Duration::from_millis(10));
    let counted = async {
        loop {
            looks.tick().await;
            let text = scraped(web).await;
            if figure(&text, series).is_some() {
                return text;
            }
        }
    };
    let counted = timeout(DEADLINE, counted).await;
    counted.unwrap_or_else(|_| panic!("no `{series}` at /metrics"))
}

#[tokio::test]
async fn figures_go_up_with_calls_and_tell_no_argument() {
    let server = fake("any")
        .tool("echo", Step::Echo)
        .tool("fail", Step::ToolError("no".to_owned()));
    let house = house_with_daemon([server]);
    house.configure_more("[http]\nmetrics = true\ntokens = { one = \"${ONE_TOKEN}\" }");
    house.indexed().await;
    let mut command = house.command(["serve", "--http", "127.0.0.1:0"]);
    command.env("ONE_TOKEN", TOKEN);
    let site = Site::start(command).await;
    for wrong in [None, Some("fedcba9876543210fedcba9876543210")] {
        let web = site.web();
        let web = match wrong {
            Some(token) => web.with("authorization", &format!("Bearer {token}")),
            None => web,
        };
        assert_eq!(web.ask("GET", "/metrics", "").await.status, 401);
    }
    let web = site.web().with("authorization", &format!("Bearer {TOKEN}"));
    assert_eq!(web.ask("POST", "/metrics", "").await.status, 405);
    let rebound = web.clone().with("host", "evil.example");
    assert_eq!(rebound.ask("GET", "/metrics", "").await.status, 403);

    let ok = "proxy_calls_total{server=\"any\",kind=\"tool\",outcome=\"ok\"}";
    assert_eq!(figure(&scraped(&web).await, ok), None);
    let client = web.initialize("a-client-of-ours", LEGACY_VERSION).await;
    client.search("do echo").await.good();
    client.search("zzzz qqqq").await;
    for _ in 0..2 {
        let echo = client.execute("any/echo", json!({ "key": "s3cr3t-argument" }));
        echo.await.good();
    }
    client.execute("any/fail", json!({})).await;
    client.execute("any/nonsense", json!({})).await;
    let unknown = "proxy_calls_total{server=\"any\",kind=\"tool\",outcome=\"unknown_tool\"}";
    let text = timeout(DEADLINE, until_counted(&web, unknown)).await;
    let text = text.expect("the calls are counted");
    for (series, value) in [
        (ok, 2.0),
        (
            "proxy_calls_total{server=\"any\",kind=\"tool\",outcome=\"tool_error\"}",
            1.0,
        ),
        ("proxy_tool_calls_total{server=\"any\",tool=\"echo\"}", 2.0),
        (
            "proxy_call_duration_seconds_bucket{server=\"any\",le=\"+Inf\"}",
            4.0,
        ),
        ("proxy_call_duration_seconds_count{server=\"any\"}", 4.0),
        (
            "proxy_policy_decisions_total{decision=\"allow\",refused=\"false\"}",
            3.0,
        ),
        ("proxy_searches_total", 2.0),
        ("proxy_servers{server=\"any\",state=\"ready\"}", 1.0),
        ("proxy_servers{server=\"any\",state=\"stopped\"}", 0.0),
        ("proxy_server_starts_total{server=\"any\"}", 1.0),
        ("proxy_sessions_total", 1.0),
        ("proxy_clients", 1.0),
        ("proxy_results_kept", 0.0),
        ("proxy_records_lost_total", 0.0),
    ] {
        assert_eq!(figure(&text, series), Some(value), "{series}\n{text}");
    }
    assert!(figure(&text, "process_resident_memory_bytes") > Some(1e6));
    for hidden in ["s3cr3t", "a-client-of-ours", "zzzz", TOKEN] {
        assert!(!text.contains(hidden), "{hidden}\n{text}");
    }
    site.stop().await;
    house.stops_clean().await;
}

#[tokio::test]
async fn without_the_key_there_is_no_such_path() {
    let house = house([fake("any").tool("echo", Step::Echo)]);
    house.indexed().await;
    let site = house.site().await;
    let [metrics, other] = ["/metrics", "/other"].map(|path| (site.web(), path));
    let told = async |(web, path): (Web, &str)| {
        let answer = web.ask("GET", path, "").await;
        (answer.status, answer.text().await)
    };
    let (metrics, other) = (told(metrics).await, told(other).await);
    assert_eq!(metrics.0, 404);
    assert_eq!(metrics, other);
    site.stop().await;
    house.stops_clean().await;
}
