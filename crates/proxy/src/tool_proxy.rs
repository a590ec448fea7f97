//! The program `tool-proxy` of a build by `cargo`: becomes the program `proxy` beside it, which is 70 MB and
//! would otherwise be linked twice. Packages contain the program itself under this name.
#![expect(
    clippy::print_stderr,
    reason = "it reports that the other program is missing"
)]

use std::{
    env,
    os::unix::process::CommandExt as _,
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
    let error = Command::new(&program).arg0(called).args(words).exec();
    eprintln!(
        "error: tool-proxy cannot start {}: {error}\nhint: install both programs again",
        program.display()
    );
    ExitCode::FAILURE
}
