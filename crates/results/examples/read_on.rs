//! Fits a long result into a budget, then reads on in what was kept of it.
//!
//! `cargo run -p results --example read_on`
#![expect(clippy::print_stdout, reason = "a program for a terminal")]

use anyhow::{Context as _, anyhow};
use jsonrpc::Json;
use results::{
    Budget, KeptResult, LIMIT_DEFAULT, Origin, Output, ReadOutcome, ReadRequest, ResultSettings,
    ResultStore, fit, read, text_block,
};
use tool::ClientId;

const ROOM: Output = Output { room: 300 };

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let store = ResultStore::new(folder.path(), &ResultSettings::default());
    let client = ClientId {
        connection: None,
        folder: None,
        name: "example".into(),
        caller: None,
    };

    let lines = (1..=2_000).map(|n| format!("line {n}: all is well"));
    let log = lines.collect::<Vec<_>>().join("\n");
    let result = jsonrpc::json(format!(r#"{{"content":[{}]}}"#, text_block(&log)))?;
    let origin = Origin {
        client: Some(client.clone()),
        reads_on: true,
    };
    let fitted = fit(result, Budget::new(300), origin, &store).await;
    println!("{}\n", fitted.result.as_str());

    let handle = handle_in(&fitted.result).context("it was cut, so a footer names its handle")?;
    let open = async || -> anyhow::Result<KeptResult> {
        let opened = store.open(&handle, Some(&client)).await;
        opened.map_err(|error| anyhow!(error))
    };
    let part = ReadRequest {
        handle: handle.clone(),
        part: Some(2),
        ..ReadRequest::default()
    };
    let last_lines = ReadRequest {
        handle: handle.clone(),
        offset: Some(-3),
        ..ReadRequest::default()
    };
    for request in [part, last_lines] {
        let found = read(request, open().await?, ROOM, &store, LIMIT_DEFAULT).await;
        match found.map_err(|error| anyhow!("{error:?}"))? {
            ReadOutcome::Texts(reading) => println!("{}{}\n", reading.texts.concat(), reading.note),
            ReadOutcome::Value(value) => println!("{value}"),
        }
    }
    Ok(())
}

/// The handle that the last line of an answer names.
fn handle_in(result: &Json) -> Option<String> {
    let (_, behind) = result.as_str().rsplit_once(r#"{\"handle\":\""#)?;
    behind.split('\\').next().map(str::to_owned)
}
