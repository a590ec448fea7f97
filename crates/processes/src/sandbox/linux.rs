//! Restricts file access with Landlock, and sockets with a filter of system calls.

use std::{collections::BTreeMap, fs::File, path::Path};

use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    RulesetCreated, RulesetCreatedAttr as _, Scope, path_beneath_rules,
};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};

use super::{ConfineError, Permissions};

/// The first Landlock version that can deny the truncation of a file (Linux 6.2).
const ABI_MIN: ABI = ABI::V3;

/// The devices that stay writable: they store nothing that is written to them.
const DEVICES: [&str; 6] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
];

const EACCES: u32 = 13;

/// The numbers of the refused system calls: `socket`, `connect`, and `io_uring_setup`, because a
/// ring can perform the first two without the filter.
#[cfg(target_arch = "x86_64")]
const OF_SOCKETS: [i64; 6] = [41, 42, 425, X32 + 41, X32 + 42, X32 + 425];
#[cfg(target_arch = "aarch64")]
const OF_SOCKETS: [i64; 3] = [198, 203, 425];

/// The bit that selects the x32 variant of a system call, on kernels that have it.
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;

/// Checks that [`enter`] can work, without dropping permissions.
pub fn check() -> Result<(), ConfineError> {
    ruleset().map(drop)
}

/// Drops the permissions that are not kept, for this thread and all that it starts or executes.
/// Afterwards no program can gain privileges, by the setuid bit or otherwise, and signals reach no
/// process outside, if the kernel supports that restriction.
///
/// Call it while no other thread runs, and execute the program from the same thread.
pub fn enter(kept: &Permissions) -> Result<(), ConfineError> {
    for path in &kept.write {
        let opened = File::open(path);
        opened.map_err(|error| ConfineError::Path {
            path: path.clone(),
            why: error.to_string(),
        })?;
    }
    let failed = |error: landlock::RulesetError| ConfineError::Failed(error.to_string());
    let write = kept.write.iter().map(AsRef::<Path>::as_ref);
    let write = write.chain(DEVICES.iter().map(Path::new));
    let rules = path_beneath_rules(write, AccessFs::from_write(ABI_MIN));
    let ruleset = ruleset()?.add_rules(rules).map_err(failed)?;
    ruleset.restrict_self().map_err(failed)?;
    if !kept.network {
        refuse_sockets().map_err(|error| ConfineError::Failed(error.to_string()))?;
    }
    Ok(())
}

fn ruleset() -> Result<RulesetCreated, ConfineError> {
    let create = || {
        Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_write(ABI_MIN))?
            .set_compatibility(CompatLevel::BestEffort)
            .scope(Scope::from_all(ABI::V6))?
            .create()
    };
    create().map_err(|error| ConfineError::Unavailable(format!("Landlock of Linux 6.2: {error}")))
}

fn refuse_sockets() -> Result<(), seccompiler::Error> {
    let refused: BTreeMap<i64, _> = OF_SOCKETS.map(|number| (number, Vec::new())).into();
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let errno = SeccompAction::Errno(EACCES);
    let filter = SeccompFilter::new(refused, SeccompAction::Allow, errno, arch)?;
    let program: BpfProgram = filter.try_into()?;
    seccompiler::apply_filter(&program)
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        net::TcpListener,
        os::unix::net::{UnixListener, UnixStream},
        path::PathBuf,
        thread,
    };

    use super::{Permissions, check, enter};

    /// Returns which operations succeed in a confined thread: write inside, write outside, truncate
    /// a file outside, move a file out, connect, connect to a unix socket, write to `/dev/null`,
    /// read.
    fn try_all(network: bool) -> [bool; 8] {
        let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (inside, outside) = (inside.path(), outside.path());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (file, socket) = (outside.join("file"), outside.join("socket"));
        fs::write(&file, "kept").unwrap();
        let _unix = UnixListener::bind(&socket).unwrap();
        let kept = Permissions {
            network,
            write: vec![inside.to_owned()],
        };
        thread::scope(|scope| {
            let tried = scope.spawn(|| {
                enter(&kept).unwrap();
                fs::create_dir(inside.join("folder")).unwrap();
                [
                    fs::write(inside.join("folder/new"), "x").is_ok(),
                    fs::write(outside.join("new"), "x").is_ok(),
                    fs::File::options()
                        .write(true)
                        .truncate(true)
                        .open(&file)
                        .is_ok(),
                    fs::rename(inside.join("folder/new"), outside.join("moved")).is_ok(),
                    std::net::TcpStream::connect(address).is_ok(),
                    UnixStream::connect(&socket).is_ok(),
                    fs::write("/dev/null", "x").is_ok(),
                    fs::read_to_string(&file).is_ok_and(|text| text == "kept"),
                ]
            });
            tried.join().unwrap()
        })
    }

    #[test]
    fn what_is_not_kept_is_given_up() {
        check().unwrap();
        let (t, f) = (true, false);
        assert_eq!(try_all(false), [t, f, f, f, f, f, t, t]);
        assert_eq!(try_all(true), [t, f, f, f, t, t, t, t]);
    }

    #[test]
    fn a_folder_that_is_not_there_is_no_folder_that_may_be_written() {
        let kept = Permissions {
            network: true,
            write: vec![PathBuf::from("/no/such/folder")],
        };
        let refused = thread::spawn(move || enter(&kept)).join().unwrap();
        let told = refused.unwrap_err().to_string();
        assert!(told.contains("/no/such/folder"), "{told}");
    }
}
