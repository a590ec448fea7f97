//! `direct-server [--catalog FILE] [--pipe BYTES] [--hang FILE] [--hops N]`
//!
//! A server with almost no overhead, so that a bench measures the program in front of it: one
//! thread, no runtime, responses prepared in advance.
//!
//! `--catalog` is the `result` of `tools/list`. The name of a tool determines its result: `text_N`,
//! `same_N` (structured, with the same JSON as text) or `structured_N`; the response has about N
//! bytes. `--pipe` requests a stdout pipe of that size. `--hang` writes the file and then never
//! responds. `--hops` starts the server behind N processes that pass bytes on: the least that a
//! process between client and server costs.

use std::{
    collections::HashMap,
    fmt::Write as _,
    fs::{self, File},
    io::{self, BufRead as _, Read as _, Write as _},
    os::fd::AsFd,
    process::{Command, Stdio},
};

use rustix::event::{PollFd, PollFlags, poll};
use serde_json::{Value, json};

fn main() -> io::Result<()> {
    let mut server = DirectServer::default();
    let mut args = std::env::args().skip(1);
    while let (Some(flag), Some(value)) = (args.next(), args.next()) {
        match flag.as_str() {
            "--catalog" => server.catalog = fs::read(value)?,
            "--pipe" => widen(value.parse().map_err(io::Error::other)?),
            "--hang" => {
                fs::write(value, "started")?;
                io::copy(&mut io::stdin(), &mut io::sink())?;
                return Ok(());
            }
            "--hops" => return relay(value.parse().map_err(io::Error::other)?),
            _ => return Err(io::Error::other(format!("unknown flag {flag}"))),
        }
    }
    server.serve()
}

/// Sets the size of the stdout pipe. If the system refuses, the pipe keeps its size.
fn widen(bytes: usize) {
    let _ = rustix::pipe::fcntl_setpipe_size(io::stdout(), bytes);
}

/// Passes bytes between this process and a server behind it until stdin ends.
fn relay(hops: u32) -> io::Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    if hops > 1 {
        command.args(["--hops", &(hops - 1).to_string()]);
    }
    let mut next = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let missing = || io::Error::other("the next process has no pipe");
    let mut requests = (
        open(io::stdin())?,
        open(next.stdin.take().ok_or_else(missing)?)?,
    );
    let mut answers = (
        open(next.stdout.take().ok_or_else(missing)?)?,
        open(io::stdout())?,
    );
    let mut bytes = vec![0; READ_BYTES];
    loop {
        let wanted = [&requests.0, &answers.0];
        let mut wanted = wanted.map(|it| PollFd::new(it, PollFlags::IN));
        poll(&mut wanted, None)?;
        let [asked, answered] = wanted.map(|it| !it.revents().is_empty());
        if asked && !pass_on(&mut requests, &mut bytes)? {
            drop(requests);
            return next.wait().map(drop);
        }
        if answered {
            pass_on(&mut answers, &mut bytes)?;
        }
    }
}

/// Without the buffers of the standard library.
fn open(end: impl AsFd) -> io::Result<File> {
    end.as_fd().try_clone_to_owned().map(File::from)
}

/// Returns false at the end of the first.
fn pass_on((from, to): &mut (File, File), bytes: &mut [u8]) -> io::Result<bool> {
    let read = from.read(bytes)?;
    to.write_all(&bytes[..read])?;
    Ok(read > 0)
}

#[derive(Default)]
struct DirectServer {
    catalog: Vec<u8>,
    /// The `result` of a call, by tool name.
    payloads: HashMap<String, Vec<u8>>,
}

/// Room for some thousand requests in one read.
const READ_BYTES: usize = 64 * 1024;

impl DirectServer {
    fn serve(mut self) -> io::Result<()> {
        let mut input = io::BufReader::with_capacity(READ_BYTES, io::stdin().lock());
        let mut output = open(io::stdout())?;
        let (mut line, mut answer) = (String::new(), Vec::new());
        while input.read_line(&mut line)? > 0 {
            answer.clear();
            if let Some(id) = after(&line, r#""id":"#) {
                let id = id.split([',', '}']).next().unwrap_or("null");
                self.answer(&line, id, &mut answer);
                output.write_all(&answer)?;
            }
            line.clear();
        }
        Ok(())
    }

    fn answer(&mut self, line: &str, id: &str, answer: &mut Vec<u8>) {
        let method = text_after(line, r#""method":""#);
        let result = match method {
            "tools/call" => self.payload(text_after(line, r#""name":""#)),
            "tools/list" if self.catalog.is_empty() => br#"{"tools":[]}"#,
            "tools/list" => &self.catalog,
            "initialize" => INITIALIZED,
            _ => return answer.extend_from_slice(unknown(id).as_bytes()),
        };
        answer.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        answer.extend_from_slice(id.as_bytes());
        answer.extend_from_slice(br#","result":"#);
        answer.extend_from_slice(result);
        answer.extend_from_slice(b"}\n");
    }

    fn payload(&mut self, tool: &str) -> &[u8] {
        if !self.payloads.contains_key(tool) {
            self.payloads.insert(tool.to_owned(), make(tool));
        }
        &self.payloads[tool]
    }
}

const INITIALIZED: &[u8] = br#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"direct","version":"1"}}"#;

fn unknown(id: &str) -> String {
    let error = r#""error":{"code":-32601,"message":"Method not found"}"#;
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{error}}}\n")
}

fn after<'a>(line: &'a str, mark: &str) -> Option<&'a str> {
    line.split_once(mark).map(|(_, rest)| rest)
}

fn text_after<'a>(line: &'a str, mark: &str) -> &'a str {
    after(line, mark)
        .and_then(|rest| rest.split('"').next())
        .unwrap_or_default()
}

fn make(tool: &str) -> Vec<u8> {
    let (kind, bytes) = tool.rsplit_once('_').unwrap_or((tool, "0"));
    let bytes: usize = bytes.parse().unwrap_or(0);
    let result = match kind {
        "text" => json!({"content": [{"type": "text", "text": prose(bytes)}]}),
        "structured" => json!({"content": [], "structuredContent": records(bytes)}),
        "same" => {
            let structured = records(bytes / 2);
            let text = structured.to_string();
            json!({"content": [{"type": "text", "text": text}], "structuredContent": structured})
        }
        _ => json!({"content": [{"type": "text", "text": "no such tool"}], "isError": true}),
    };
    result.to_string().into_bytes()
}

/// Returns lines like those of a log, some with characters that JSON escapes.
fn prose(bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 100);
    let mut number = 0;
    while text.len() < bytes {
        let _ = writeln!(
            text,
            "{number:06} worker \"mail-{}\" sent 3 messages to the queue in {} ms",
            number % 7,
            number % 91
        );
        number += 1;
    }
    text.truncate(bytes);
    text
}

fn records(bytes: usize) -> Value {
    const RECORD_BYTES: usize = 140;
    let record = |number: usize| {
        json!({"id": number, "title": format!("Broken link on page {number}"), "open": number.is_multiple_of(2),
            "labels": ["bug", "site"], "author": {"name": "ada", "score": 0.5}, "milestone": null})
    };
    let records: Vec<Value> = (0..bytes / RECORD_BYTES).map(record).collect();
    json!({"total": records.len(), "items": records})
}
