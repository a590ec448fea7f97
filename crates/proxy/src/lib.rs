//! One MCP server that stands in for all of your MCP servers.
//!
//! The program: the command line, its output, and the wiring of the other crates.

#![cfg_attr(test, allow(clippy::unwrap_used))]

use std::process::ExitCode;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

mod allowance;
mod cli;
mod commands;
mod event_loop;
mod exit;
mod live;
mod logging;
mod report;
mod scripts_folder;
mod signals;
mod table;
mod time;

/// Parses the command line, runs the command, and reports errors.
pub fn main() -> ExitCode {
    forbid_core_dumps();
    clap_complete::CompleteEnv::with_factory(cli::command)
        .var(cli::complete::VARIABLE)
        .complete();
    cli::run(std::env::args_os()).into()
}

/// Tokens and secrets are in memory, and must not be written to a core file. A limit of one byte also
/// applies if dumps are piped to a program, which a limit of zero does not (`man 5 core`).
fn forbid_core_dumps() {
    let maximum = getrlimit(Resource::Core).maximum;
    let limit = Rlimit {
        current: Some(maximum.map_or(1, |maximum| maximum.min(1))),
        maximum,
    };
    // If the system does not allow lowering our own limit, nothing can be done about it.
    let _ = setrlimit(Resource::Core, limit);
}
