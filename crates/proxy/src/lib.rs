//! One MCP server that stands for all of them.
//!
//! The program: its command line, what people read, and the wiring of the rooms.

#![cfg_attr(test, allow(clippy::unwrap_used))]

use std::process::ExitCode;

mod cli;
mod commands;
mod exit;
mod live;
mod report;
mod table;

/// Parses the command line, does what it says, and reports.
pub fn main() -> ExitCode {
    clap_complete::CompleteEnv::with_factory(cli::command)
        .var(cli::complete::VARIABLE)
        .complete();
    let code = match cli::parse(std::env::args_os()) {
        Ok(arguments) => commands::run(arguments),
        Err(code) => code,
    };
    code.into()
}
