//! One MCP server that stands for all of them.
//!
//! The program: its command line, its configuration, its face towards clients (the three tools),
//! and the wiring between the fleet (`fleet`) and the registry (`registry`).

#![cfg_attr(test, allow(clippy::unwrap_used))]

use std::process::ExitCode;

mod cli;
mod commands;
pub mod config;
mod cut;
mod daemon;
pub mod demo;
pub mod front;
mod http;
mod live;
mod report;
pub mod results;
mod survey;
pub mod tokens;
mod upkeep;

/// Parses the command line, does what it says, and reports.
pub fn main() -> ExitCode {
    let code = match cli::parse(std::env::args_os()) {
        Ok(arguments) => commands::run(arguments),
        Err(code) => code,
    };
    code.into()
}
