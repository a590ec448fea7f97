//! The house of a soak: its servers, its configuration, and a disk that can be filled.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use super::plan::Plan;
use crate::{
    fake::Step,
    house::{Fake, House, Programs, fake},
    port::ReservedPort,
};

/// Longer than any successful call, shorter than the pause of a server.
const TIMEOUT: &str = "timeout_s = 30";
/// The duration of a call of the tool `slow`.
const SLOW_MS: u64 = 25;
/// Room for the index, logs, audit and kept results; small enough to be filled.
const DISK_MIB: u64 = 64;
/// The page size of a tmpfs on every supported machine, or a multiple of it.
const PAGE_BYTES: u64 = 4096;
/// The limit of kept results for each client, in MiB: a client that is paused for seconds finds its own
/// results again, while results of the others are kept.
const KEPT_MIB: u64 = 4;

#[derive(Debug)]
pub(super) struct Estate {
    pub(super) house: House,
    /// The port on which every daemon of this run serves HTTP in turn.
    pub(super) port: ReservedPort,
    pub(super) programs: Programs,
    /// The configuration when no edit is in progress.
    config: String,
    edited: [String; 2],
    disk: Option<Disk>,
}

impl Estate {
    /// Builds the house; the error is for the person who runs the soak.
    pub(super) async fn build(plan: &Plan, wants_disk: bool) -> Result<Self, String> {
        let programs = programs()?;
        let house = House::new(&programs, (0..plan.servers).map(server)).with_daemon();
        let port = ReservedPort::new();
        let servers = read_config(&house)?;
        let kept_mib = KEPT_MIB * (plan.fronts + plan.webs) as u64;
        // Each start of a server writes a log line to a disk that may be full.
        let config = format!(
            "log = \"info\"\n{servers}\n[http]\nlisten = \"{}\"\n\
             [results]\nkeep_mib = {kept_mib}\n",
            port.address()
        );
        house.configure(&config);
        house.add(fake("extra").tool("echo", Step::Echo));
        let edited = [
            read_config(&house)?,
            config.replacen(TIMEOUT, "timeout_s = 31", 1),
        ];
        house.configure(&config);
        let disk = wants_disk.then(|| Disk::mount(house.path("xdg-state"), DISK_MIB + kept_mib));
        let disk = disk.transpose()?;
        let indexed = house.cli(["reindex"]).await;
        if indexed.code != Some(0) {
            return Err(format!("reindex: {}{}", indexed.stdout, indexed.stderr));
        }
        Ok(Self {
            house,
            port,
            programs,
            config,
            edited,
            disk,
        })
    }

    pub(super) fn edit_config(&self, which: usize) {
        self.house
            .configure(&self.edited[which % self.edited.len()]);
    }

    pub(super) fn break_config(&self) {
        self.house
            .configure(&format!("{}\n[servers.s0\n", self.config));
    }

    pub(super) fn mend_config(&self) {
        self.house.configure(&self.config);
    }

    pub(super) fn fill_disk(&self) {
        if let Some(disk) = &self.disk {
            disk.fill();
        }
    }

    pub(super) fn clear_disk(&self) {
        if let Some(disk) = &self.disk {
            disk.clear();
        }
    }
}

/// Returns the server of this number; the kinds alternate.
fn server(number: usize) -> Fake {
    let garble = [
        Step::line("no JSON, and {\"half\": "),
        Step::Bytes(b"\xff\xfe\x80\n".to_vec()),
        // With the id of the call it would be its answer.
        Step::line(r#"[{"jsonrpc":"2.0","id":"of no call","result":{}}]"#),
        Step::line(r#"{"jsonrpc":"2.0","id":null,"result":{}}"#),
        Step::Echo,
        Step::Echo,
    ];
    let plain = fake(&format!("s{number}"))
        .tool("echo", Step::Echo)
        .tool("slow", [Step::WaitMs(SLOW_MS), Step::Echo])
        .tool("garble", garble)
        .tool("hang", Step::UntilCancelled)
        .tool("crash", [Step::stderr("crashes as told\n"), Step::Exit(7)])
        .setting(TIMEOUT)
        // A record of millions of lines is useless.
        .script(|script| script.record = Some("/dev/null".into()));
    match number % 6 {
        0 => plain,
        1 => plain.under_shell(),
        2 => plain.deaf(),
        3 => plain.before(Step::Spawn),
        4 => plain.setting("scope = \"client\""),
        _ => plain.setting("idle_timeout_s = 1"),
    }
}

/// Returns the programs that Cargo puts beside this one.
pub(super) fn programs() -> Result<Programs, String> {
    let ours = std::env::current_exe().and_then(fs::canonicalize);
    let ours = ours.map_err(|error| error.to_string())?;
    let beside = |name: &str| {
        let program = ours.with_file_name(name);
        if program.is_file() {
            return Ok(program);
        }
        let at = program.display();
        Err(format!(
            "{at} is not there: `cargo build -p journeys --bins` makes it, as `just soak` does"
        ))
    };
    Ok(Programs {
        proxy: beside("proxy-under-test")?,
        fake_server: beside("fake-server")?,
    })
}

fn read_config(house: &House) -> Result<String, String> {
    fs::read_to_string(house.config()).map_err(|error| error.to_string())
}

/// A small file system of its own, so that filling it affects nothing else.
#[derive(Debug)]
struct Disk {
    at: PathBuf,
}

impl Disk {
    fn mount(at: PathBuf, mib: u64) -> Result<Self, String> {
        fs::create_dir_all(&at).map_err(|error| error.to_string())?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o"]);
        mount
            .arg(format!("size={mib}m,mode=0700"))
            .arg("tmpfs")
            .arg(&at);
        match mount.status() {
            Ok(status) if status.success() => Ok(Self { at }),
            Ok(status) => Err(format!("mount of a tmpfs: {status}; --without full-disk")),
            Err(error) => Err(format!("mount: {error}; --without full-disk")),
        }
    }

    fn ballast(&self) -> PathBuf {
        self.at.join("ballast")
    }

    /// Fills the disk to the last byte: the next line of a log does not fit.
    fn fill(&self) {
        for log in self.logs() {
            fill_last_page(&log);
        }
        let Ok(mut ballast) = fs::File::create(self.ballast()) else {
            return;
        };
        // The copy ends with the error that the disk is full.
        let _ = std::io::copy(&mut std::io::repeat(0), &mut ballast);
    }

    fn clear(&self) {
        let _ = fs::remove_file(self.ballast());
    }

    /// Returns the daemon logs in the state folders.
    fn logs(&self) -> Vec<PathBuf> {
        let folders = fs::read_dir(self.at.join("proxy")).into_iter().flatten();
        let logs = folders.filter_map(|folder| Some(folder.ok()?.path().join("daemon.log")));
        logs.filter(|log| log.is_file()).collect()
    }
}

/// Fills the last page of a file. A file occupies whole pages of a tmpfs; otherwise the page has
/// room on a full disk.
fn fill_last_page(file: &Path) {
    let Ok(mut file) = fs::OpenOptions::new().append(true).open(file) else {
        return;
    };
    let bytes = file.metadata().map_or(0, |data| data.len());
    let room = bytes.next_multiple_of(PAGE_BYTES) - bytes;
    let newlines = vec![b'\n'; usize::try_from(room).unwrap_or_default()];
    let _ = file.write_all(&newlines);
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Unmounted lazily: a leftover process must not prevent it.
        let _ = Command::new("umount").arg("--lazy").arg(&self.at).status();
    }
}
