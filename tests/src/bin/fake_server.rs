//! `fake-server [--script JSON | --script-file FILE] [--catalog FILE] [--record FILE]`

use std::{fs, process};

use journeys::fake::{Script, serve};

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let outcome = match script_from(std::env::args().skip(1)) {
        Ok(script) => serve(script).await,
        Err(error) => Err(error),
    };
    let code = outcome.unwrap_or_else(|error| {
        complain(&error);
        2
    });
    // A thread may still be blocked in a read; it must not keep the process alive.
    process::exit(code);
}

fn script_from(mut args: impl Iterator<Item = String>) -> Result<Script, String> {
    let mut script = Script::default();
    let (mut catalog, mut record) = (None, None);
    while let Some(flag) = args.next() {
        let value = args.next().ok_or_else(|| format!("{flag} needs a value"))?;
        match flag.as_str() {
            "--script" => script = parse(&value)?,
            "--script-file" => {
                let text = fs::read_to_string(&value);
                script = parse(&text.map_err(|error| format!("{value}: {error}"))?)?;
            }
            "--catalog" => catalog = Some(value.into()),
            "--record" => record = Some(value.into()),
            _ => return Err(format!("unknown flag {flag}")),
        }
    }
    script.catalog = catalog.or(script.catalog);
    script.record = record.or(script.record);
    Ok(script)
}

fn parse(json: &str) -> Result<Script, String> {
    serde_json::from_str(json).map_err(|error| format!("script: {error}"))
}

#[expect(
    clippy::print_stderr,
    reason = "the person who wrote the script reads it"
)]
fn complain(error: &str) {
    eprintln!("fake-server: {error}");
}
