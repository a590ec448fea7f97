//! Finds the children of an exited proxy by a variable in their environment.

use crate::{
    group::end,
    proof::{Claim, ClaimedMarks, ProcessTable},
};

/// Ends the processes that a crashed predecessor left: every process that a proxy that no longer
/// runs started under `marker`, and its group. Returns the number of groups. Blocks for up to half a
/// second.
///
/// A process that moved to a session of its own (a browser, a daemon) is not ended, as when its
/// server is stopped.
pub fn sweep(marker: &str) -> usize {
    end(|| {
        let claim = Claim {
            groups: &[],
            marks: ClaimedMarks::LeftBy(marker),
        };
        ProcessTable::read(None).find(&claim)
    })
}

#[cfg(test)]
mod tests {
    use std::{
        os::unix::process::CommandExt as _,
        process::{Child, Command},
    };

    use super::sweep;
    use crate::mark::{Mark, Owner, VARIABLE};

    /// Returns a marker that only this test uses.
    fn marker(test: &str) -> String {
        format!("test:{test}:{}", std::process::id())
    }

    fn child(mark: &str) -> Child {
        Command::new("sleep")
            .arg("1000")
            .env(VARIABLE, mark)
            .process_group(0)
            .spawn()
            .unwrap()
    }

    fn signal_of(mut child: Child) -> Option<i32> {
        use std::os::unix::process::ExitStatusExt as _;
        child.wait().unwrap().signal()
    }

    #[test]
    fn children_of_a_proxy_that_is_gone_are_ended_and_no_others() {
        let marker = marker("gone");
        let left = child(&format!("{marker}:{}:0", Owner::gone()));
        let mut ours = child(&Mark::next(&marker).unwrap().to_string());
        let mut of_another = child(&format!("{marker}-other:{}:0", Owner::gone()));
        let far = Owner {
            session: Owner::gone().session + 1,
            ..Owner::gone()
        };
        let mut of_another_session = child(&format!("{marker}:{far}:0"));

        assert_eq!(sweep(&marker), 1);

        assert_eq!(signal_of(left), Some(15));
        for spared in [&mut ours, &mut of_another, &mut of_another_session] {
            assert_eq!(spared.try_wait().unwrap(), None);
            spared.kill().unwrap();
            spared.wait().unwrap();
        }
        assert_eq!(sweep(&marker), 0);
    }
}
