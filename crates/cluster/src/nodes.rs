//! The nodes of the cluster, as their messages show them.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use fleet::{LogHead, NodeServer, NodeState, RunState};
use parking_lot::Mutex;
use printable::Pattern;
use tokio::time::Instant;
use tool::ServerName;

use crate::{
    frames::{Beat, millis},
    seal::Boot,
};

/// The time between two messages of a node.
pub(crate) const BEAT_EVERY: Duration = Duration::from_secs(3);

/// The time after which a node that sends nothing is not connected.
pub(crate) const GONE_AFTER: Duration = Duration::from_secs(10);

/// The time for which a node that left is remembered.
const REMEMBERED_FOR: Duration = Duration::from_hours(24);

/// The nodes that are remembered.
const NODES_MAX: usize = 1_000;

/// A process that a request is sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) node: String,
    pub(crate) boot: Boot,
    /// The time on its clock, as far as known.
    pub(crate) clock_ms: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Nodes {
    known: Mutex<BTreeMap<String, KnownNode>>,
    /// The clocks of processes that answered before their first message came.
    clocks: Mutex<BTreeMap<Boot, (u64, Instant)>>,
    /// Nodes whose messages were sealed with another key, and when the last came.
    strangers: Mutex<BTreeMap<String, Instant>>,
}

#[derive(Debug, Clone)]
struct KnownNode {
    boot: Boot,
    beat: Beat,
    heard: Instant,
}

impl Nodes {
    /// Notes a message. Returns true if the process was not known.
    pub(crate) fn note(&self, boot: Boot, beat: Beat) -> bool {
        if !beat.is_member {
            // A command, or a second process with the name of a node, stands for no node.
            self.note_clock(boot, beat.clock_ms);
            return false;
        }
        let now = Instant::now();
        let mut known = self.known.lock();
        if known.len() >= NODES_MAX {
            known.retain(|_, it| now - it.heard < REMEMBERED_FOR);
        }
        self.strangers.lock().remove(&beat.node);
        let node = beat.node.clone();
        let heard = now;
        let before = known.insert(node, KnownNode { boot, beat, heard });
        before.is_none_or(|it| it.boot != boot)
    }

    /// Notes a message that this node cannot open. Returns true for the first one of a node.
    pub(crate) fn note_stranger(&self, node: &str) -> bool {
        let node = printable::one_line_of(node, 60);
        let mut strangers = self.strangers.lock();
        strangers.len() < NODES_MAX && strangers.insert(node, Instant::now()).is_none()
    }

    /// Nodes with another key that sent a message lately.
    pub(crate) fn strangers(&self) -> Vec<String> {
        let mut strangers = self.strangers.lock();
        strangers.retain(|_, at| at.elapsed() < GONE_AFTER);
        strangers.keys().cloned().collect()
    }

    /// A process by its node and boot id; it need not be connected.
    pub(crate) fn target(&self, node: &str, boot: Boot) -> Target {
        let known = self.known.lock();
        let seen = known.get(node).filter(|it| it.boot == boot);
        Target {
            node: node.to_owned(),
            boot,
            clock_ms: seen.map_or_else(|| self.answered_clock(boot), KnownNode::clock_now),
        }
    }

    fn answered_clock(&self, boot: Boot) -> u64 {
        let clocks = self.clocks.lock();
        let clock = clocks.get(&boot);
        clock.map_or(0, |(ms, at)| ms + millis(at.elapsed()))
    }

    /// Notes the clock of a process, which it sent in an answer.
    pub(crate) fn note_clock(&self, boot: Boot, clock_ms: u64) {
        let mut clocks = self.clocks.lock();
        if clocks.len() >= NODES_MAX {
            clocks.clear();
        }
        clocks.insert(boot, (clock_ms, Instant::now()));
    }

    /// The connected members whose names match a pattern; all without one.
    pub(crate) fn matching(&self, pattern: Option<&Pattern>) -> Vec<Target> {
        let known = self.known.lock();
        let members = known.values().filter(|it| it.is_connected());
        let matching =
            members.filter(|it| pattern.is_none_or(|pattern| pattern.matches(&it.beat.node)));
        let target = |it: &KnownNode| Target {
            node: it.beat.node.clone(),
            boot: it.boot,
            clock_ms: it.clock_now(),
        };
        matching.map(target).collect()
    }

    /// The first node whose name matches a pattern and that is not connected, with the seconds of its silence;
    /// true if it has left.
    pub(crate) fn find_absent(&self, pattern: &Pattern) -> Option<(String, u64, bool)> {
        let known = self.known.lock();
        let mut absent = known.values().filter(|it| !it.is_connected());
        let KnownNode { beat, heard, .. } = absent.find(|it| pattern.matches(&it.beat.node))?;
        Some((
            beat.node.clone(),
            heard.elapsed().as_secs(),
            beat.is_leaving,
        ))
    }

    /// The node that runs a server now, and its state there.
    pub(crate) fn state_of(&self, server: &ServerName, node: &str) -> Option<RunState> {
        let known = self.known.lock();
        let node = known.get(node).filter(|it| it.is_connected())?;
        let mut running = node.beat.running.iter();
        let state = running.find(|(name, _)| name == server);
        Some(state.map_or(RunState::Stopped, |(_, state)| *state))
    }

    /// The names of the connected members.
    pub(crate) fn connected(&self) -> BTreeSet<String> {
        let known = self.known.lock();
        let connected = known.values().filter(|it| it.is_connected());
        connected.map(|it| it.beat.node.clone()).collect()
    }

    /// The connected members, each with its process.
    pub(crate) fn processes(&self) -> Vec<(String, Boot)> {
        let known = self.known.lock();
        let connected = known.values().filter(|it| it.is_connected());
        let process = |it: &KnownNode| (it.beat.node.clone(), it.boot);
        connected.map(process).collect()
    }

    /// Returns true if a connected member says that it owns or runs a server.
    pub(crate) fn claims(&self, server: &ServerName) -> bool {
        let known = self.known.lock();
        let mut beats = known
            .values()
            .filter(|node| node.is_connected())
            .map(|node| &node.beat);
        beats.any(|beat| {
            beat.owned.contains(server) || beat.running.iter().any(|(name, _)| name == server)
        })
    }

    /// The newest calls in the audit logs of other nodes.
    pub(crate) fn log_heads(&self) -> Vec<(String, LogHead)> {
        let known = self.known.lock();
        let head = |it: &KnownNode| Some((it.beat.node.clone(), it.beat.log_head.clone()?));
        known.values().filter_map(head).collect()
    }

    /// Every node but this one.
    pub(crate) fn list(&self) -> Vec<NodeState> {
        let known = self.known.lock();
        let state = |it: &KnownNode| NodeState {
            node: it.beat.node.clone(),
            is_here: false,
            is_connected: it.is_connected(),
            silent_s: it.heard.elapsed().as_secs(),
            version: it.beat.version.clone(),
            running: list_running(&it.beat.running),
            shared_revision: it.beat.shared_revision,
        };
        known.values().map(state).collect()
    }
}

pub(crate) fn list_running(running: &[(ServerName, RunState)]) -> Vec<NodeServer> {
    NodeServer::list(running.iter().map(|(name, state)| (name, *state)))
}

impl KnownNode {
    fn is_connected(&self) -> bool {
        !self.beat.is_leaving && self.heard.elapsed() < GONE_AFTER
    }

    fn clock_now(&self) -> u64 {
        self.beat.clock_ms + millis(self.heard.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use printable::LetterCase;

    use super::*;
    use crate::seal::Seal;

    fn beat(node: &str) -> Beat {
        Beat {
            node: node.to_owned(),
            clock_ms: 500,
            version: "1".to_owned(),
            running: vec![("git".parse().unwrap(), RunState::Ready)],
            owned: Vec::new(),
            is_member: true,
            is_leaving: false,
            is_new: false,
            shared_revision: 0,
            log_head: None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_is_connected_while_it_sends_and_its_clock_goes_on() {
        let nodes = Nodes::default();
        let pattern = |text| Pattern::new(text, LetterCase::Matters).unwrap();
        let (gpu, mac) = (pattern("gpu-*"), pattern("mac"));
        let boot = Seal::new("c", "k").boot();
        assert!(nodes.note(boot, beat("gpu-1")), "it is new");
        assert!(!nodes.note(boot, beat("gpu-1")));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(nodes.matching(Some(&gpu))[0].clock_ms, 2_500);
        assert_eq!(nodes.matching(Some(&mac)), []);
        let git = "git".parse().unwrap();
        assert_eq!(nodes.state_of(&git, "gpu-1"), Some(RunState::Ready));
        tokio::time::advance(GONE_AFTER).await;
        assert_eq!(nodes.matching(Some(&gpu)), []);
        let absent = ("gpu-1".to_owned(), 12, false);
        assert_eq!(nodes.find_absent(&gpu), Some(absent));
        assert_eq!(nodes.state_of(&git, "gpu-1"), None);
        nodes.note(boot, beat("gpu-1"));
        let leaving = Beat {
            is_leaving: true,
            ..beat("gpu-1")
        };
        nodes.note(boot, leaving);
        assert_eq!(nodes.matching(None), []);
        let restarted = Seal::new("c", "k").boot();
        assert!(nodes.note(restarted, beat("gpu-1")), "another process");
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_with_another_key_is_named_until_it_has_ours() {
        let nodes = Nodes::default();
        assert!(nodes.note_stranger("mac\n"));
        assert!(!nodes.note_stranger("mac\n"));
        assert_eq!(nodes.strangers().len(), 1);
        nodes.note_stranger("mac");
        nodes.note(Seal::new("c", "k").boot(), beat("mac"));
        tokio::time::advance(GONE_AFTER).await;
        assert!(nodes.strangers().is_empty());
    }
}
