//! Compares the scan of a message with `serde_json`: `cargo run --release -p jsonrpc --example scan`.
//! Prints the best of 50 runs for 1 MB of a string, with an escape every five bytes and without any.

use std::{hint::black_box, time::Instant};

use jsonrpc::{Fields, Message, text_of};
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Parsed<'a> {
    #[serde(borrow)]
    result: &'a RawValue,
}

fn main() {
    let dense = r#"{"id": 1, "name": "Issue", "labels": ["bug"]}, "#.repeat(1_000_000 / 58);
    let plain = "It fails when the input is long and wide. ".repeat(1_000_000 / 42);
    for (name, text) in [("escapes", dense), ("none", plain)] {
        let text = serde_json::Value::from(text).to_string();
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"text":{text}}}}}"#);
        let line = line.as_bytes();
        let scan = best(|| Message::parse(line).is_some());
        let serde =
            best(|| serde_json::from_slice::<Parsed<'_>>(line).map(|it| it.result.get().len()));
        print(&format!("parse, {name}"), line.len(), scan, serde);
        let message = Message::parse(line).expect("it is a message");
        let fields = Fields::of(message.result.expect("a result").get()).expect("an object");
        let quoted = fields.get("text").expect("a text");
        let scan = best(|| text_of(quoted).map(std::borrow::Cow::into_owned));
        let serde = best(|| serde_json::from_str::<String>(quoted.get()));
        print(
            &format!("unescape, {name}"),
            quoted.get().len(),
            scan,
            serde,
        );
    }
}

fn best<T>(work: impl Fn() -> T) -> f64 {
    let runs = (0..50).map(|_| {
        let began = Instant::now();
        black_box(work());
        began.elapsed().as_secs_f64() * 1e3
    });
    runs.fold(f64::MAX, f64::min)
}

#[expect(clippy::print_stdout, reason = "an example speaks on stdout")]
fn print(what: &str, bytes: usize, scan: f64, serde: f64) {
    println!("{what:<18} {bytes} bytes: {scan:.2} ms, serde_json {serde:.2} ms");
}
