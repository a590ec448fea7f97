//! The log: its filter, and its destination.

use daemon::log::LogWriter;
use tracing_subscriber::{
    EnvFilter,
    fmt::writer::{BoxMakeWriter, MakeWriterExt as _},
};

/// The default filter; the table of keys has the same.
pub(crate) const LOG_DEFAULT: &str = "warn";

/// Our crates that log, each under its own name.
const CRATES: [&str; 7] = [
    "proxy",
    "gateway",
    "daemon",
    "http_server",
    "fleet",
    "processes",
    "registry",
];

/// Returns the filter that shows the events of our own crates from this level on.
pub(crate) fn filter_ours(level: &str) -> String {
    let ours = CRATES.map(|name| format!(",{name}={level}"));
    format!("warn{}", ours.concat())
}

/// Logs always go to stderr: stdout is data, or the protocol. A line that cannot be written is lost:
/// reporting it (`log_internal_errors`) could only use stderr again, which would panic.
pub(crate) fn start_log(filter: &str) {
    let has_colour = std::env::var_os("NO_COLOR").is_none()
        && std::io::IsTerminal::is_terminal(&std::io::stderr());
    start(filter, BoxMakeWriter::new(std::io::stderr), has_colour);
}

/// Logs to the file of a daemon. One in the foreground also logs to stderr, which a supervisor or a container
/// collects; one that a client started has none.
pub(crate) fn start_log_to(filter: &str, log: LogWriter, is_foreground: bool) {
    let writer = if is_foreground {
        BoxMakeWriter::new(log.and(std::io::stderr))
    } else {
        BoxMakeWriter::new(log)
    };
    start(filter, writer, false);
}

fn start(filter: &str, writer: BoxMakeWriter, has_colour: bool) {
    let _ = tracing_subscriber::fmt()
        .with_env_filter(quiet_rmcp(filter))
        .with_writer(writer)
        .log_internal_errors(false)
        .with_ansi(has_colour)
        .try_init();
}

/// The protocol library logs whole messages, and so secrets; it logs only on request.
fn quiet_rmcp(filter: &str) -> EnvFilter {
    let is_named = filter.contains("rmcp");
    let quiet = if is_named { "" } else { ",rmcp=off" };
    let filter = EnvFilter::try_new(format!("{filter}{quiet}"));
    filter.unwrap_or_else(|_| EnvFilter::new("warn,rmcp=off"))
}
