//! Witnesses of audit logs: each node writes the newest calls of a few others into its own log, so that lines
//! that are removed from the end of one log are missed by another.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use tokio::time::{Instant, sleep_until};

use crate::core::Core;

/// The nodes that write the head of one node's log: those that follow it in the order of names.
const WITNESSES: usize = 3;

/// The time between two lines about one node that makes calls.
const NOTE_EVERY: Duration = Duration::from_secs(20);

/// Writes the heads of other nodes' logs. Runs until it is dropped.
pub(crate) async fn write_heads(core: &Core) {
    let mut noted = BTreeMap::new();
    let mut next = Instant::now();
    loop {
        next += NOTE_EVERY;
        sleep_until(next).await;
        let connected = core.nodes.connected();
        for (node, head) in core.nodes.log_heads() {
            let is_new = noted.get(&node) != Some(&head);
            if is_new && is_witness(&core.settings.node, &node, &connected) {
                core.own_data.note_head(&node, head.clone());
                noted.insert(node, head);
            }
        }
    }
}

/// Returns true if a node is a witness of another one's log.
fn is_witness(own: &str, of: &str, connected: &BTreeSet<String>) -> bool {
    let mut ring: BTreeSet<&str> = connected.iter().map(String::as_str).collect();
    ring.insert(own);
    ring.remove(of);
    let after = ring.range(of..).chain(ring.range(..of));
    after.take(WITNESSES).any(|name| *name == own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_log_has_three_witnesses_and_all_nodes_agree_on_them() {
        let names: BTreeSet<String> = (0..9).map(|nth| format!("n{nth}")).collect();
        let witnesses = |of: &str, connected: &BTreeSet<String>| {
            let all = names.iter();
            let all = all.filter(|own| connected.contains(*own) && *own != of);
            let all = all.filter(|own| is_witness(own, of, connected));
            all.cloned().collect::<Vec<_>>()
        };
        assert_eq!(witnesses("n2", &names), ["n3", "n4", "n5"]);
        assert_eq!(witnesses("n7", &names), ["n0", "n1", "n8"]);
        let mut fewer = names.clone();
        fewer.remove("n2");
        fewer.remove("n4");
        assert_eq!(witnesses("n2", &fewer), ["n3", "n5", "n6"], "it left");
        let two: BTreeSet<String> = ["n0", "n1"].map(str::to_owned).into();
        assert_eq!(witnesses("n1", &two), ["n0"]);
    }
}
