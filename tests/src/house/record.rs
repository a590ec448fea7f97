//! The messages that fake servers of a house have received, as they recorded them.

use std::fs;

use serde_json::Value;
use tokio::time::timeout;

use super::{House, server::record_name};
use crate::client::DEADLINE;

impl House {
    /// Returns the lines that a fake server has received so far, including its remarks.
    pub fn received(&self, server: &str) -> Vec<String> {
        let text = fs::read_to_string(self.path(record_name(server))).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Returns the messages with this method that a fake server has received.
    pub fn received_method(&self, server: &str, method: &str) -> Vec<Value> {
        let lines = self.received(server);
        let messages = lines
            .iter()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        messages
            .filter(|message| message["method"] == method)
            .collect()
    }

    /// Returns the number of starts of a fake server.
    pub fn starts(&self, server: &str) -> usize {
        self.pids(server).len()
    }

    /// Returns the process ids of a fake server, the newest last.
    pub fn pids(&self, server: &str) -> Vec<u32> {
        let lines = self.received(server);
        let remarks = lines
            .iter()
            .filter(|line| line.starts_with(r#"{"fake":"started""#));
        let pids = remarks.filter_map(|line| {
            let remark: Value = serde_json::from_str(line).ok()?;
            u32::try_from(remark["pid"].as_u64()?).ok()
        });
        pids.collect()
    }

    /// Returns the remarks that a fake server wrote, in order.
    pub fn remarks(&self, server: &str) -> Vec<String> {
        let lines = self.received(server);
        let remarks = lines.iter().filter_map(|line| {
            let line: Value = serde_json::from_str(line).ok()?;
            Some(line.get("fake")?.as_str()?.to_owned())
        });
        remarks.collect()
    }

    /// Waits until a fake server has received a line for which `found` returns true.
    pub async fn until_received(&self, server: &str, found: impl Fn(&str) -> bool) {
        let mut looks = tokio::time::interval(std::time::Duration::from_millis(5));
        let waited = timeout(DEADLINE, async {
            while !self.received(server).iter().any(|line| found(line)) {
                looks.tick().await;
            }
        });
        let found = waited.await.is_ok();
        assert!(
            found,
            "{server} has received only:\n{}",
            self.received(server).join("\n")
        );
    }

    /// Waits until a fake server has received this many calls.
    pub async fn until_calls(&self, server: &str, count: usize) {
        let mut looks = tokio::time::interval(std::time::Duration::from_millis(5));
        let waited = timeout(DEADLINE, async {
            while self.received_method(server, "tools/call").len() < count {
                looks.tick().await;
            }
        });
        waited.await.unwrap_or_else(|_| {
            let got = self.received_method(server, "tools/call").len();
            panic!("{server} has received {got} of {count} calls");
        });
    }
}
