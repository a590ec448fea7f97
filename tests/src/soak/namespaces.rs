//! Machines of a soak: network namespaces around a switch, so that a partition loses packets and resets no
//! connection.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use tempfile::TempDir;

use crate::{house::Programs, nats::NatsPlace};

/// The two halves of the switch. A machine reaches those in its own half.
const HALVES: [&str; 2] = ["left", "right"];

/// Machines, each with an address. They are removed when this is dropped.
#[derive(Debug)]
pub(super) struct Machines {
    switch: String,
    names: Vec<String>,
    /// The programs that start ours in a machine.
    folder: TempDir,
}

impl Machines {
    /// Makes machines. An error says why this system does not have them.
    pub(super) fn new(count: usize) -> Result<Self, String> {
        let tag = format!("px-{}", std::process::id());
        let machines = Self {
            switch: format!("{tag}-switch"),
            names: (0..count).map(|nth| format!("{tag}-{nth}")).collect(),
            folder: tempfile::tempdir().map_err(|error| error.to_string())?,
        };
        ip(&format!("netns add {}", machines.switch))?;
        for half in HALVES {
            machines.switch(&format!("link add {half} type bridge"))?;
            machines.switch(&format!("link set {half} up"))?;
        }
        for (nth, name) in machines.names.iter().enumerate() {
            ip(&format!("netns add {name}"))?;
            machines.switch(&format!(
                "link add m{nth} type veth peer name eth0 netns {name}"
            ))?;
            machines.switch(&format!("link set m{nth} master left up"))?;
            let address = address_of(nth);
            ip(&format!("-n {name} addr add {address}/24 dev eth0"))?;
            ip(&format!("-n {name} link set eth0 up"))?;
            ip(&format!("-n {name} link set lo up"))?;
        }
        Ok(machines)
    }

    fn switch(&self, command: &str) -> Result<(), String> {
        ip(&format!("-n {} {command}", self.switch))
    }

    /// Puts these machines into the other half of the switch, and the others into the first.
    pub(super) fn part(&self, apart: &[usize]) {
        for nth in 0..self.names.len() {
            let half = HALVES[usize::from(apart.contains(&nth))];
            let moved = self.switch(&format!("link set m{nth} master {half}"));
            moved.expect("a machine can be moved");
        }
    }

    /// The place of a NATS server in a machine.
    pub(super) fn nats_place(&self, nth: usize) -> NatsPlace {
        let prefix = ["ip", "netns", "exec", &self.names[nth]];
        NatsPlace {
            address: address_of(nth),
            prefix: prefix.map(str::to_owned).into(),
        }
    }

    /// Our programs, which run in a machine.
    pub(super) fn programs(&self, nth: usize, programs: &Programs) -> Programs {
        let name = &self.names[nth];
        let started = |path: &Path| {
            format!(
                "#!/bin/sh\nexec ip netns exec {name} '{}' \"$@\"\n",
                path.display()
            )
        };
        let path = self.folder.path().join(name);
        fs::write(&path, started(&programs.proxy)).expect("the test folder is writable");
        let mode = fs::Permissions::from_mode(0o700);
        fs::set_permissions(&path, mode).expect("the file is ours");
        Programs {
            proxy: path,
            ..programs.clone()
        }
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for name in self.names.iter().chain([&self.switch]) {
            let _ = ip(&format!("netns del {name}"));
        }
    }
}

fn address_of(nth: usize) -> String {
    format!("10.77.0.{}", nth + 10)
}

fn ip(arguments: &str) -> Result<(), String> {
    let output = Command::new("ip").args(arguments.split(' ')).output();
    let output = output.map_err(|error| format!("ip {arguments}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "ip {arguments}: {}; --machines needs root",
        why.trim()
    ))
}
