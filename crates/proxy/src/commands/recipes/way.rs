//! The way to start or reach a server, as JSON.

use recipes::StartMethod;
use serde_json::{Value, json};

pub(super) fn way_json(way: &StartMethod) -> Value {
    match way {
        StartMethod::Command(command) => json!({ "command": command }),
        StartMethod::Remote {
            url,
            transport,
            headers,
        } => {
            let transport = match transport {
                recipes::Transport::Http => "http",
                recipes::Transport::Sse => "sse",
            };
            json!({"url": url, "transport": transport, "headers": headers})
        }
    }
}
