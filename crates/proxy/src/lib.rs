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

/// Parses the command line, does what it says, and reports.
pub fn main() -> ExitCode {
    let code = match cli::parse(std::env::args_os()) {
        Ok(arguments) => commands::run(arguments),
        Err(code) => code,
    };
    code.into()
}
