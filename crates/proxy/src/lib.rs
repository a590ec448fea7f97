//! One MCP server that stands in for all of your MCP servers.
//!
//! The program: the command line, its output, and the wiring of the other crates.

#![cfg_attr(test, allow(clippy::unwrap_used))]

use std::process::ExitCode;

mod allowance;
mod cli;
mod commands;
mod event_loop;
mod exit;
mod file_watch;
mod live;
mod logging;
mod node;
mod page_editor;
mod report;
mod scripts_folder;
mod shared_pins;
mod signals;
mod table;
mod time;

/// Parses the command line, runs the command, and reports errors.
pub fn main() -> ExitCode {
    // Tokens and secrets are in memory.
    processes::forbid_core_dumps();
    processes::hide_streams_from_children();
    clap_complete::CompleteEnv::with_factory(cli::command)
        .var(cli::complete::VARIABLE)
        .complete();
    cli::run(std::env::args_os()).into()
}
