//! The guarantees of this system, for people. `docs/platforms.md` has the table of all systems.

/// A guarantee, and how this system keeps it.
#[derive(Debug, Clone, Copy)]
pub struct Guarantee {
    /// The guarantee.
    pub name: &'static str,
    /// The way in which it is kept, or its exceptions.
    pub how: &'static str,
    /// False if it does not hold on this system.
    pub holds: bool,
}

/// The name of this system, and its guarantees.
#[cfg(target_os = "linux")]
pub const GUARANTEES: (&str, &[Guarantee]) = (
    "Linux",
    &[
        Guarantee {
            name: "no process is left",
            how: "by process groups, marks in environments, pidfds and a reaper process",
            holds: true,
        },
        Guarantee {
            name: "helpers end with us and have limits",
            how: "by the kernel",
            holds: true,
        },
        Guarantee {
            name: "scripts are confined",
            how: if HAS_CALL_FILTER {
                "by the limits of the engine and a filter of system calls"
            } else {
                "only by the limits of the engine: there is no filter of system calls for this processor"
            },
            holds: HAS_CALL_FILTER,
        },
    ],
);

#[cfg(target_os = "linux")]
const HAS_CALL_FILTER: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// The name of this system, and its guarantees.
#[cfg(windows)]
pub const GUARANTEES: (&str, &[Guarantee]) = (
    "Windows",
    &[
        Guarantee {
            name: "no process is left",
            how: "by job objects: the kernel ends all children when we end, however we end",
            holds: true,
        },
        Guarantee {
            name: "servers end in an orderly way",
            how: "only at the end of their input: there is no signal to stop, so a server that keeps \
                  running is killed after that",
            holds: false,
        },
        Guarantee {
            name: "helpers end with us and have limits",
            how: "by a job object; memory and processor time by a thread of the helper, which looks \
                  every 50 ms",
            holds: true,
        },
        Guarantee {
            name: "scripts are confined",
            how: "only by the limits of the engine: Windows has no filter of system calls",
            holds: false,
        },
        Guarantee {
            name: "files are private",
            how: "by the access list of their folder, such as your profile; a state folder that other \
                  users can read is not refused",
            holds: true,
        },
    ],
);

/// The name of this system, and its guarantees.
#[cfg(target_os = "macos")]
pub const GUARANTEES: (&str, &[Guarantee]) = (
    "macOS",
    &[
        Guarantee {
            name: "no process is left",
            how: "by process groups, marks in environments and a reaper process; a program of macOS \
                  itself that left its group may stay, because its environment is hidden",
            holds: true,
        },
        Guarantee {
            name: "helpers end with us and have limits",
            how: "by a thread of the helper, which looks every 50 ms; processor time by the kernel",
            holds: true,
        },
        Guarantee {
            name: "scripts are confined",
            how: "only by the limits of the engine: macOS has no filter of system calls",
            holds: false,
        },
    ],
);
