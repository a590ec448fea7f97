//! The processes of this machine, as the system reports them.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
mod stat;

use std::collections::HashMap;

#[cfg(target_os = "linux")]
use self::linux as system;
#[cfg(target_os = "macos")]
use self::macos as system;
pub(crate) use self::stat::{Identity, Stat};
pub(crate) use self::system::{
    ProcessHandle, is_in_our_pid_space, list, open_handle, read_own, read_process, read_variable,
};

/// Returns the memory that each process group uses, in bytes, by group id.
pub fn group_memory() -> HashMap<i32, u64> {
    let mut memory = HashMap::new();
    for stat in list().filter_map(read_process) {
        *memory.entry(stat.group).or_default() += stat.memory_bytes;
    }
    memory
}

/// Returns the memory that this process uses, in bytes.
pub fn own_memory() -> Option<u64> {
    Some(read_own()?.memory_bytes)
}

/// Returns true if a signal such as SIGSTOP has stopped the process.
pub fn is_stopped(pid: u32) -> bool {
    i32::try_from(pid).is_ok_and(system::is_stopped)
}

/// Returns the process that listens on a TCP port of this machine, and its name; `None` if the system does not
/// tell it to us. Reads the descriptors of all our processes, and so blocks for a moment.
pub fn find_listener(port: u16) -> Option<(u32, String)> {
    let pid = system::find_listener(port)?;
    let name = system::read_name(pid).unwrap_or_default();
    Some((u32::try_from(pid).ok()?, name))
}

impl Identity {
    /// Returns the identity of the process that has this pid now.
    pub(crate) fn of(pid: i32) -> Option<Self> {
        Some(read_process(pid)?.identity)
    }

    /// Reads the current state; returns `None` once the pid is free or reused.
    pub(crate) fn read(self) -> Option<Stat> {
        read_process(self.pid).filter(|stat| stat.identity == self)
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::net::TcpListener;

    use super::find_listener;

    #[test]
    fn the_process_that_has_a_port_is_found() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else {
                // The machine has no IPv6.
                continue;
            };
            let port = listener.local_addr().unwrap().port();
            let (pid, name) = find_listener(port).unwrap();
            assert_eq!(pid, std::process::id());
            assert!(!name.is_empty());
            drop(listener);
            assert_ne!(find_listener(port).map(|it| it.0), Some(pid), "{address}");
        }
    }
}
