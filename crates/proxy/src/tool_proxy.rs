//! The program `tool-proxy` of a build by `cargo`: becomes the program `proxy` beside it, which is 70 MB and
//! would otherwise be linked twice. Packages contain the program itself under this name.
#![expect(
    clippy::print_stderr,
    reason = "it reports that the other program is missing"
)]

use std::{
    env,
    process::{Command, ExitCode},
};

fn main() -> ExitCode {
    let mut words = env::args_os();
    let called = words.next().unwrap_or_else(|| "tool-proxy".into());
    let program = match env::current_exe() {
        Ok(ours) => ours.with_file_name("proxy"),
        Err(error) => {
            eprintln!("error: tool-proxy cannot find its own folder: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut command = Command::new(&program);
    processes::rename(&mut command, called);
    let error = processes::become_program(command.args(words));
    eprintln!(
        "error: tool-proxy cannot start {}: {error}\nhint: install both programs again",
        program.display()
    );
    ExitCode::FAILURE
}
