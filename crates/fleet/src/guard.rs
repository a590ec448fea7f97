//! A process that outlives us when we are killed, and then ends our children.

use std::{
    collections::HashSet,
    ffi::OsString,
    fs,
    io::{self, BufRead, Write as _},
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustix::fs::{OFlags, fcntl_setfl};
use tracing::{debug, warn};

use crate::{
    group::{Group, end, wait_until},
    limits::GUARD_GRACE,
    sweep::{Owner, left_behind},
};

/// Under this name the guard is seen. It does not hold ours, so that `pkill -9` with our name
/// leaves the one process that cleans up after it.
const NAME: &str = "child-guard";

/// Our side of the guard: tells it which process groups it would have to end. It is started with
/// the first child, and again whenever it is found dead. Dropping it ends it.
#[derive(Debug)]
pub struct Guard {
    program: PathBuf,
    args: Vec<OsString>,
    post: Mutex<Post>,
}

#[derive(Debug, Default)]
struct Post {
    groups: HashSet<Group>,
    process: Option<Process>,
}

#[derive(Debug)]
struct Process {
    child: Child,
    notes: ChildStdin,
}

impl Guard {
    /// `program` with `args` must run [`guard`] on its stdin. Starts nothing yet.
    pub fn new(program: PathBuf, args: Vec<OsString>) -> Self {
        Self {
            program,
            args,
            post: Mutex::default(),
        }
    }

    /// Makes sure that the guard stands before a child is spawned, so that the note about the
    /// child follows at once.
    pub(crate) fn prepare(&self) {
        let mut post = self.post();
        if !post.is_manned() {
            self.man(&mut post);
        }
    }

    pub(crate) fn watch(&self, group: Group) {
        let mut post = self.post();
        post.groups.insert(group);
        self.note(&mut post, &format!("+{group}\n"));
    }

    pub(crate) fn forget(&self, group: Group) {
        let mut post = self.post();
        if post.groups.remove(&group) {
            self.note(&mut post, &format!("-{group}\n"));
        }
    }

    fn note(&self, post: &mut Post, note: &str) {
        let Some(process) = &mut post.process else {
            return;
        };
        if process.tell(note).is_err() {
            self.man(post);
        }
    }

    /// Starts a guard and tells it everything. Without one we serve on: the sweep of the next
    /// start stands behind it.
    fn man(&self, post: &mut Post) {
        drop(post.process.take());
        let owner = Owner::ourselves().map(|owner| format!("={owner}\n"));
        let groups = post.groups.iter().map(|group| format!("+{group}\n"));
        let notes: String = owner.into_iter().chain(groups).collect();
        let manned = self.spawn().and_then(|mut process| {
            process.tell(&notes)?;
            Ok(process)
        });
        match manned {
            Ok(process) => {
                debug!(pid = process.child.id(), "the guard stands");
                post.process = Some(process);
            }
            Err(error) => warn!(%error, "no guard: children may outlive a `kill -9` of us"),
        }
    }

    /// Its environment is empty: there are secrets in ours, and it needs none of it.
    fn spawn(&self) -> io::Result<Process> {
        let mut child = Command::new(&self.program)
            .arg0(NAME)
            .args(&self.args)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let notes = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let process = Process { child, notes };
        // A guard that was stopped must not stop us; one that does not read is replaced.
        fcntl_setfl(&process.notes, OFlags::NONBLOCK)?;
        Ok(process)
    }

    fn post(&self) -> MutexGuard<'_, Post> {
        self.post.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Post {
    fn is_manned(&mut self) -> bool {
        let left = self
            .process
            .as_mut()
            .map(|process| process.child.try_wait());
        matches!(left, Some(Ok(None)))
    }
}

impl Process {
    fn tell(&mut self, notes: &str) -> io::Result<()> {
        self.notes.write_all(notes.as_bytes())
    }
}

/// Whoever drops it has ended its children (each of them holds the guard), or tells the next
/// guard of them.
impl Drop for Process {
    fn drop(&mut self) {
        let ended = self.child.kill().and_then(|()| self.child.wait());
        if let Err(error) = ended {
            debug!(%error, "the guard could not be ended");
        }
    }
}

/// What the guard does: reads notes until its input ends, which is when we are gone, however we
/// went. Then it ends every group it still knows, and children that we had no time to note.
///
/// It needs no ear for signals: it leads a group of its own, so those of a terminal do not reach
/// it, and who sends TERM to it alone means it.
pub fn guard(input: impl BufRead) {
    rename();
    let mut told = Told::default();
    for line in input.lines().map_while(Result::ok) {
        told.hear(&line);
    }
    let groups: Vec<Group> = told.groups.into_iter().collect();
    end(&groups);
    if let Some(owner) = told.owner {
        end_unnoted(owner);
    }
}

/// Our own process, not one that lives, may be looked up by its children: its input has ended
/// because it did, though the system may not have taken it down yet.
fn end_unnoted(owner: Owner) {
    if wait_until(GUARD_GRACE, || !owner.lives()) {
        end(&left_behind(|_, of| of == owner));
    }
}

#[derive(Debug, Default)]
struct Told {
    owner: Option<Owner>,
    groups: HashSet<Group>,
}

impl Told {
    fn hear(&mut self, line: &str) {
        let group = |id: &str| Group::new(id.parse().ok()?);
        let mut chars = line.chars();
        match (chars.next(), chars.as_str()) {
            (Some('='), owner) => self.owner = owner.parse().ok(),
            (Some('+'), id) => self.groups.extend(group(id)),
            (Some('-'), id) => {
                group(id).map(|group| self.groups.remove(&group));
            }
            _ => {}
        }
    }
}

fn rename() {
    // Only Linux knows how; elsewhere the name stays.
    let _ = fs::write("/proc/self/comm", NAME);
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::{
        io::{self, BufRead as _, BufReader},
        os::unix::process::{CommandExt as _, ExitStatusExt as _},
        path::Path,
        process::{Child, Command, ExitStatus, Stdio},
        sync::Arc,
    };

    use rustix::process::{Pid, Signal, kill_process};
    use tool::ServerName;

    use super::{Guard, NAME, guard};
    use crate::{
        Launch, ServerSpec, Surroundings, Template,
        child::Running,
        group::{Group, wait_until},
        limits::TEST_WAIT,
        processes::Stat,
    };

    /// A process that leads a group of its own, started and ready for signals.
    fn leader(script: &str) -> (Child, Group) {
        let mut child = Command::new("sh")
            .args([
                "-c",
                &format!("{script}\necho ready; sleep 1000 & wait; wait"),
            ])
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let group = Group::new(child.id().cast_signed()).unwrap();
        (child, group)
    }

    fn by(signal: Signal) -> ExitStatus {
        ExitStatus::from_raw(signal.as_raw())
    }

    #[test]
    fn at_the_end_of_its_input_it_ends_who_it_still_knows() {
        let (mut polite, first) = leader("");
        let (mut stubborn, second) = leader("trap '' TERM");
        let (mut forgotten, third) = leader("");
        let notes = format!("+{first}\n+{second}\nnoise\n+0\n+1\n+{third}\n-{third}\n");

        guard(notes.as_bytes());

        assert_eq!(polite.wait().unwrap(), by(Signal::TERM));
        assert_eq!(stubborn.wait().unwrap(), by(Signal::KILL));
        assert_eq!(forgotten.try_wait().unwrap(), None);
        third.signal(Signal::KILL);
        forgotten.wait().unwrap();
        for group in [first, second, third] {
            assert!(wait_until(TEST_WAIT, || !group.lives()));
        }
    }

    /// A test of this very program, run as a process of its own.
    fn role(name: &str) -> Vec<std::ffi::OsString> {
        let test = format!("guard::tests::{name}");
        let args = [test.as_str(), "--exact", "--ignored", "--nocapture"];
        args.iter().map(Into::into).collect()
    }

    fn our_guard() -> Guard {
        let program = std::env::current_exe().unwrap();
        Guard::new(program, role("role_of_the_guard"))
    }

    #[test]
    #[ignore = "a role in other tests, not a test"]
    fn role_of_the_guard() {
        guard(io::stdin().lock());
    }

    fn pid(guard: &Guard) -> Pid {
        let post = guard.post();
        Pid::from_child(&post.process.as_ref().unwrap().child)
    }

    fn runs(pid: Pid) -> bool {
        let stat = Stat::read(&Path::new("/proc").join(pid.to_string()));
        stat.is_some_and(|stat| !stat.is_dead)
    }

    #[test]
    fn a_guard_that_died_is_replaced_and_told_everything_and_goes_with_us() {
        let ours = our_guard();
        let (mut child, group) = leader("");
        ours.prepare();
        ours.watch(group);
        let first = pid(&ours);
        kill_process(first, Signal::KILL).unwrap();
        let died = || !ours.post().is_manned();
        assert!(wait_until(TEST_WAIT, died));

        ours.prepare();
        let second = pid(&ours);
        assert_ne!(second, first);
        let mut post = ours.post();
        let mut process = post.process.take().unwrap();
        drop(post);
        // As our death would: its input ends.
        drop(std::mem::replace(&mut process.notes, silent_pipe()));
        assert_eq!(child.wait().unwrap(), by(Signal::TERM));

        ours.forget(group);
        ours.prepare();
        let third = pid(&ours);
        drop(ours);
        assert!(!runs(third));
    }

    fn silent_pipe() -> std::process::ChildStdin {
        let mut child = Command::new("true").stdin(Stdio::piped()).spawn().unwrap();
        let pipe = child.stdin.take().unwrap();
        child.wait().unwrap();
        pipe
    }

    #[test]
    fn a_guard_that_does_not_read_holds_nobody_up() {
        let ours = our_guard();
        ours.prepare();
        let first = pid(&ours);
        kill_process(first, Signal::STOP).unwrap();
        let (mut child, group) = leader("");
        while pid(&ours) == first {
            ours.watch(group);
        }
        ours.forget(group);
        group.signal(Signal::KILL);
        child.wait().unwrap();
    }

    #[tokio::test]
    async fn a_child_that_was_stopped_is_forgotten() {
        let surroundings = Arc::new(Surroundings {
            guard: Some(our_guard()),
            ..Surroundings::default()
        });
        let launch = Launch::Child {
            command: Template::parse("cat").unwrap(),
            args: Vec::new(),
            env: Vec::new(),
            cwd: None,
        };
        let spec = ServerSpec::new("cat".parse::<ServerName>().unwrap(), launch);
        let (running, pipes) = Running::spawn(&spec, &surroundings).unwrap();
        let known = || surroundings.guard.as_ref().unwrap().post().groups.len();
        assert_eq!(known(), 1);
        drop(pipes);
        running.stop().await;
        assert_eq!(known(), 0);
    }

    /// A proxy with a server under `sh -c`, and one that went to a group of its own before we
    /// could note it. It tells their groups and waits to be killed.
    #[tokio::test]
    #[ignore = "a role in other tests, not a test"]
    async fn role_of_a_proxy() {
        let surroundings = Arc::new(Surroundings {
            guard: Some(our_guard()),
            marker: Some("test".to_owned()),
            log_folder: None,
        });
        let script = "trap '' TERM; sleep 1000 & bash -c 'set -m; sleep 1000 & echo started $PPID $! >&2; wait'; :";
        let arg = |text| Template::parse(text).unwrap();
        let launch = Launch::Child {
            command: arg("sh"),
            args: vec![arg("-c"), arg(&script.replace('$', "$$"))],
            env: Vec::new(),
            cwd: None,
        };
        let spec = ServerSpec::new("shell".parse::<ServerName>().unwrap(), launch);
        let (running, _pipes) = Running::spawn(&spec, &surroundings).unwrap();
        let told = async {
            loop {
                let failure = running.blame(crate::Failure::new(""));
                match failure.stderr {
                    Some(line) if line.starts_with("started") => return line,
                    _ => tokio::task::yield_now().await,
                }
            }
        };
        let line = told.await;
        let guard = pid(surroundings.guard.as_ref().unwrap());
        io::Write::write_all(&mut io::stderr(), format!("{line} {guard}\n").as_bytes()).unwrap();
        std::future::pending::<()>().await;
    }

    /// Killed, whatever becomes of the test.
    struct Ended(Child);

    impl Drop for Ended {
        fn drop(&mut self) {
            self.0.kill().and_then(|()| self.0.wait()).unwrap();
        }
    }

    #[test]
    fn nobody_outlives_a_proxy_that_is_killed() {
        let mut proxy = Ended(
            Command::new(std::env::current_exe().unwrap())
                .args(role("role_of_a_proxy"))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .process_group(0)
                .spawn()
                .unwrap(),
        );
        let output = BufReader::new(proxy.0.stderr.take().unwrap());
        let mut lines = output.lines().map(Result::unwrap);
        let line = lines.find(|line| line.starts_with("started")).unwrap();
        let numbers: Vec<i32> = line
            .split(' ')
            .skip(1)
            .map(|id| id.parse().unwrap())
            .collect();
        let [server, stray, guard] = numbers[..] else {
            panic!("{line}");
        };
        let groups = [server, stray].map(|id| Group::new(id).unwrap());
        assert!(groups.iter().all(|group| group.lives()));
        let name = std::fs::read_to_string(format!("/proc/{guard}/comm")).unwrap();
        assert_eq!(name.trim(), NAME);

        drop(proxy);

        assert!(wait_until(TEST_WAIT, || !groups
            .iter()
            .any(|group| group.lives())));
        assert!(wait_until(TEST_WAIT, || !runs(
            Pid::from_raw(guard).unwrap()
        )));
    }
}
