//! `cargo run -p tree -- CHECK...`: reads the source tree and prints violations of its rules.
//!
//! `arrows` checks the crates against `.ci/arrows.toml`, `circles` the files of each crate and the
//! methods of each type, `deny` every package of `Cargo.lock` against `deny.toml`, and each
//! dependency against its row in decision 0001; `measures` only
//! prints figures, and `notices` the licences of everything in the program.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for a terminal"
)]

mod arrows;
mod circles;
mod deny;
mod licence;
mod measures;
mod names;
mod notices;
mod packages;
mod resolve;
mod rows;
mod source;

use std::{env, path::PathBuf, process::ExitCode};

use anyhow::{Result, bail};
use packages::Packages;

fn main() -> ExitCode {
    let wanted: Vec<String> = env::args().skip(1).collect();
    let mut wrong = Vec::new();
    for what in &wanted {
        match run(what) {
            Ok(found) => wrong.extend(found),
            Err(error) => wrong.push(format!("{what}: {error:#}")),
        }
    }
    if wanted.is_empty() {
        wrong.push("say what: arrows, circles, names, deny, notices, measures".to_owned());
    }
    for line in &wrong {
        eprintln!("error: {line}");
    }
    ExitCode::from(u8::from(!wrong.is_empty()))
}

/// Returns the violations, one per line.
fn run(what: &str) -> Result<Vec<String>> {
    let packages = Packages::read(&root())?;
    match what {
        "arrows" => Ok(arrows::wrong(&arrows::Written::read(&root())?, &packages)),
        "circles" => {
            let written = arrows::Written::read(&root())?;
            Ok(circles::wrong(
                &written,
                &source::crates(&root(), &packages)?,
            ))
        }
        "deny" => {
            let rules = deny::Rules::read(&root())?;
            for warning in deny::duplicates(&rules, &packages) {
                println!("warning: {warning}");
            }
            let mut wrong = deny::wrong(&rules, &packages);
            wrong.extend(rows::wrong(&root(), &packages)?);
            Ok(wrong)
        }
        "names" => Ok(names::overused(&source::crates(&root(), &packages)?)),
        "notices" => {
            print!("{}", notices::render(&packages)?);
            Ok(Vec::new())
        }
        "measures" => {
            print!("{}", measures::table(&source::crates(&root(), &packages)?));
            Ok(Vec::new())
        }
        other => bail!(
            "no such check; there are arrows, circles, names, deny, notices, measures ({other})"
        ),
    }
}

/// Returns the root of the repository.
fn root() -> PathBuf {
    let ours = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    ours.join("../..").canonicalize().unwrap_or(ours)
}

#[cfg(test)]
mod tests {
    use super::run;

    #[test]
    fn crates_depend_on_each_other_as_written() {
        assert_eq!(run("arrows").unwrap(), Vec::<String>::new());
    }

    #[test]
    fn files_have_no_circles() {
        assert_eq!(run("circles").unwrap(), Vec::<String>::new());
    }

    #[test]
    fn names_of_types_are_specific() {
        assert_eq!(run("names").unwrap(), Vec::<String>::new());
    }
}
