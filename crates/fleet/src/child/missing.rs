//! Hints for a program that does not exist, or does not start.

use std::{io, path::PathBuf};

use tracing::debug;

use crate::error::Failure;

/// The failure to start a file that exists and is executable.
pub(super) fn describe_refused_start(command: &str, error: &io::Error) -> Failure {
    let failure = Failure::new(format!("cannot start `{command}`: {error}"));
    if error.kind() == io::ErrorKind::NotFound {
        return failure.hint("its first line names an interpreter that is not there: install it, or name one that is as `command`");
    }
    if processes::is_no_program(error) {
        return failure.hint("it is no program of this machine: a script needs a first line such as `#!/bin/sh`, or its interpreter as `command`");
    }
    failure
}

pub(super) fn describe_not_found(command: &str, searched: &[PathBuf]) -> Failure {
    if let [file] = searched
        && file.is_file()
    {
        let file = file.display();
        return Failure::new(format!(
            "`{command}` may not be executed: {file} has no x bit"
        ))
        .hint(format!(
            "chmod +x {file}, or name its interpreter as `command`"
        ));
    }
    debug!(command, ?searched, "not found");
    if let [file] = searched
        && command.contains('/')
    {
        return Failure::new(format!("there is no program {}", file.display()))
            .hint("look at `command`; a path is best given whole");
    }
    let why = format!("command `{command}` not found on its `PATH`");
    Failure::new(why).hint(match describe_install(command) {
        Some(install) => install.to_owned(),
        None => format!(
            "install `{command}`, or give its whole path, which `command -v {command}` tells where it is found"
        ),
    })
}

/// Returns how to install the package that provides a program with which many servers are started.
fn describe_install(command: &str) -> Option<&'static str> {
    match command {
        "node" | "npm" | "npx" => {
            Some("install Node.js 22 or newer, which brings `npx`: https://nodejs.org/en/download")
        }
        "uv" | "uvx" => Some(
            "install uv, which brings `uvx`: `curl -LsSf https://astral.sh/uv/install.sh | sh`",
        ),
        "docker" => Some("install Docker: https://docs.docker.com/get-started/get-docker"),
        "bun" | "bunx" => Some("install Bun: `curl -fsSL https://bun.sh/install | bash`"),
        "python" | "python3" => Some("install Python: https://www.python.org/downloads"),
        _ => None,
    }
}
