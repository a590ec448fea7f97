//! The name and the id of this machine.

/// Returns a text that differs between machines, if the system has one.
pub fn machine_id() -> Option<String> {
    let places = ["/etc/machine-id", "/var/lib/dbus/machine-id"];
    let ids = places
        .iter()
        .filter_map(|it| std::fs::read_to_string(it).ok());
    let id = ids.map(|it| it.trim().to_owned()).find(|it| !it.is_empty());
    id.or_else(host_name)
}

/// Returns the name of this machine, if it has one.
#[cfg(unix)]
pub fn host_name() -> Option<String> {
    let name = rustix::system::uname();
    let name = name.nodename().to_str().ok()?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// Returns the name of this machine, if it has one.
#[cfg(windows)]
pub fn host_name() -> Option<String> {
    std::env::var("COMPUTERNAME").ok()
}
