//! Tests the reuse of process ids: a process with the id of a former child of ours is not
//! signalled.

use std::{
    fs,
    os::unix::process::CommandExt as _,
    process::{Child, Command},
    sync::Arc,
};

use super::{Tree, ready, spawn};
use crate::{
    Pace, Reaper, Spawner,
    group::Group,
    proc::Identity,
    proof::{Claim, ClaimedMarks, ProcessTable},
    reap,
};

/// The maximum number of attempts: other programs also start processes, and may take the requested
/// pid.
const TRIES: usize = 200;

/// A process that leads its own group and is unrelated to the spawner.
struct Bystander(Child);

impl Bystander {
    fn any() -> Self {
        let mut sleeps = Command::new("sleep");
        Self(sleeps.arg("1000").process_group(0).spawn().unwrap())
    }

    /// Starts a process with the pid of a dead process. Returns `None` if the pid is in use, if
    /// other processes took it first, or if we lack the permission to choose it.
    fn with_number(number: u32) -> Option<Self> {
        (0..TRIES).find_map(|_| {
            choose(number)?;
            let bystander = Self::any();
            (bystander.0.id() == number).then_some(bystander)
        })
    }

    fn group(&self) -> Group {
        Group::led_by(self.0.id()).unwrap()
    }

    fn lives(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        self.0.kill().and_then(|()| self.0.wait()).unwrap();
    }
}

/// Requests the pid of the next process. Only root may do so.
fn choose(number: u32) -> Option<()> {
    fs::write("/proc/sys/kernel/ns_last_pid", (number - 1).to_string()).ok()
}

/// Starts a server that moved to a session of its own, so that its original group is empty. The
/// server exits at the end of its stdin.
async fn left(spawner: &Arc<Spawner>) -> (Tree, tokio::process::ChildStdin, Group) {
    // The leader exits after the server has moved.
    let script = "setsid --fork sh -c 'echo ready >&2; echo left; read line' | read left";
    let mut tree = spawn(script, spawner);
    let (stdin, group) = (tree.take_stdin().unwrap(), tree.group.clone().unwrap());
    tree.reap_leader().await;
    drop(ready(&mut tree).await);
    (tree, stdin, group)
}

/// Starts a process whose pid is the id of the group. If that pid is not available, changes the
/// tree's record of the group to the bystander's pid, which is equivalent.
fn bystander(tree: &mut Tree, group: &Group) -> Bystander {
    Bystander::with_number(group.id().cast_unsigned()).unwrap_or_else(|| {
        let bystander = Bystander::any();
        tree.group = Some(before(&bystander));
        bystander
    })
}

/// Returns the group as it would be recorded if the bystander had reused its id.
fn before(bystander: &Bystander) -> Group {
    let now = Identity::of(bystander.0.id().cast_signed()).unwrap();
    let earlier = Identity {
        start_ticks: now.start_ticks - 1,
        ..now
    };
    bystander.group().known_by(vec![earlier])
}

#[tokio::test]
async fn a_stop_and_a_drop_leave_who_has_the_number_now() {
    let spawner = Arc::default();
    for is_dropped in [false, true] {
        let (mut tree, stdin, group) = left(&spawner).await;
        let mut bystander = bystander(&mut tree, &group);
        drop(stdin);
        if is_dropped {
            drop(tree);
        } else {
            tree.stop(Pace::Hurried).await;
        }
        assert!(bystander.lives(), "is_dropped: {is_dropped}");
    }
}

/// The server itself still runs; with the group recorded, the reaper would kill the bystander.
#[tokio::test]
async fn the_reaper_is_told_that_a_group_is_over() {
    let reaper = Reaper::new("/bin/cat".into(), Vec::new());
    let spawner = Arc::new(Spawner::new(Some(reaper), String::new()));
    let (mut tree, stdin, _) = left(&spawner).await;
    assert_eq!(spawner.watched(), 0);
    drop(stdin);
    tree.stop(Pace::Hurried).await;
}

/// The pid stays reserved while the exit status is read, until the stop is done.
#[tokio::test]
async fn nobody_gets_the_number_of_a_child_before_its_stop_is_done() {
    let mut tree = spawn("sleep 1000 & echo ready >&2; exit 3", &Arc::default());
    let leader = tree.id().unwrap();
    assert_eq!(tree.wait_for_exit().await.unwrap().code(), Some(3));
    // In both cases, the system itself reports the process that has the pid.
    assert!(Bystander::with_number(leader).is_none());
    let identity = Identity::of(leader.cast_signed()).unwrap();
    assert!(tree.group.as_ref().unwrap().knows(identity));
    tree.stop(Pace::Hurried).await;
    assert!(identity.read().is_none());
}

#[test]
fn a_group_of_another_start_is_not_ours() {
    let mut bystander = Bystander::any();
    let (same, earlier) = (bystander.group(), before(&bystander));
    let found = |group: &Group| {
        let groups = std::slice::from_ref(group);
        let marks = ClaimedMarks::None;
        ProcessTable::near().find(&Claim { groups, marks }).len()
    };
    assert_eq!((found(&same), found(&earlier)), (1, 0));

    reap(format!("+{earlier}\n").as_bytes());
    reap(format!("+{}\n", same.id()).as_bytes());
    assert!(bystander.lives());
}

/// The leader was reaped. The remaining member has no mark; it is known only because it was in the
/// group at that time.
#[tokio::test]
async fn a_member_without_environment_is_ended_after_its_leader_was_waited_for() {
    let script = "env -i sleep 1000 & echo ready >&2";
    let mut tree = spawn(script, &Arc::default());
    tree.reap_leader().await;
    let group = tree.group.clone().expect("the group has a member");
    assert_eq!(ProcessTable::near().led_by(group.id()).len(), 1);
    tree.stop(Pace::Hurried).await;
    assert_eq!(ProcessTable::near().led_by(group.id()).len(), 0);
}
