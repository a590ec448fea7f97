//! Large numbers of configured servers, of sessions over HTTP, and of kept results.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::Stdio,
    time::Instant,
};

use crate::{
    catalog::catalogs,
    figures::Figures,
    house::{CALLED, House},
    peer::{Peer, PeerCall},
    table::ours::{own_mb, resident_mb},
};

const SERVERS: usize = 1_000;
const SESSIONS: u32 = 10_000;
const RESULTS: u32 = 100_000;

pub(crate) fn run(proxy: &Path, figures: &mut Figures) {
    servers(proxy, figures);
    sessions(proxy, figures);
    results(proxy, figures);
}

fn servers(proxy: &Path, figures: &mut Figures) {
    let house = House::new(proxy, &catalogs(SERVERS, 2 * SERVERS));
    let began = Instant::now();
    let mut client = Peer::ready(&mut house.serve_command());
    client.list_tools();
    let listed = began.elapsed().as_secs_f64() * 1e3;
    let what = format!("{SERVERS} servers");
    figures.number(
        "many",
        &format!("{what}: spawn to `tools/list`"),
        listed,
        "ms",
    );
    memory(figures, &format!("{what}, listed"), client.pid());
    let called = client.time(&PeerCall::of("describe_tool", r#"{"name":"nothing"}"#)) / 1e3;
    figures.number(
        "many",
        &format!("{what}: first look at a tool"),
        called,
        "ms",
    );
    memory(figures, &format!("{what}, loaded"), client.pid());
    client.end();
}

fn sessions(proxy: &Path, figures: &mut Figures) {
    let house = House::with_tools(proxy, 10, 1_000);
    house.append(&format!("[http]\nmax_sessions = {}\n", 2 * SESSIONS + 2));
    let mut command = house.serve_over_http();
    let mut serving = command
        .stderr(Stdio::piped())
        .stdin(Stdio::piped())
        .spawn()
        .expect("the proxy can be started");
    let mut told = String::new();
    let stderr = serving.stderr.take().expect("stderr is piped");
    BufReader::new(stderr)
        .read_line(&mut told)
        .expect("stderr is UTF-8");
    let address = told
        .split("http://")
        .nth(1)
        .and_then(|it| it.split('/').next());
    let address = address.expect("stderr has the address").trim().to_owned();
    let daemon = house.daemon_pid();
    memory(figures, "sessions: before", daemon);
    let began = Instant::now();
    let mut web = WebPeer::open(&address);
    for _ in 0..SESSIONS {
        web.begin_session();
    }
    let rate = f64::from(SESSIONS) / began.elapsed().as_secs_f64();
    figures.number("many", "sessions over HTTP begun", rate, "1/s");
    memory(figures, &format!("{SESSIONS} sessions over HTTP"), daemon);
    drop(web);
    drop(serving.stdin.take());
    house.stop_daemon();
    let _ = serving.wait();
}

fn results(proxy: &Path, figures: &mut Figures) {
    let house = House::with_tools(proxy, 10, 1_000);
    house.append("[results]\nkeep_mib = 2048\n");
    let mut client = house.serve();
    let call = PeerCall::through(&format!("{CALLED}/text_2000"), r#","max_tokens":200"#);
    let answer = String::from_utf8_lossy(client.ask(&call)).into_owned();
    assert!(
        answer.contains("read_result"),
        "the result is cut: {answer}"
    );
    memory(figures, "kept results: 1", client.pid());
    let began = Instant::now();
    for _ in 1..RESULTS {
        client.ask(&call);
    }
    let each = began.elapsed().as_secs_f64() * 1e6 / f64::from(RESULTS);
    figures.number("many", "a result that is cut and kept", each, "us");
    memory(figures, &format!("kept results: {RESULTS}"), client.pid());
    client.end();
}

fn memory(figures: &mut Figures, what: &str, pid: u32) {
    figures.number(
        "many",
        &format!("{what}: resident"),
        resident_mb(&[pid]),
        "MB",
    );
    figures.number(
        "many",
        &format!("{what}: of it its own"),
        own_mb(&[pid]),
        "MB",
    );
}

/// A client that starts one session after the other over one connection.
struct WebPeer {
    stream: BufReader<TcpStream>,
    host: String,
}

impl WebPeer {
    fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).expect("the proxy listens");
        stream.set_nodelay(true).expect("the option can be set");
        Self {
            stream: BufReader::new(stream),
            host: address.to_owned(),
        }
    }

    fn begin_session(&mut self) {
        let session = self
            .post(
                "",
                r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#,
            )
            .expect("a session begins");
        let header = format!("Mcp-Session-Id: {session}\r\n");
        self.post(
            &header,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        );
        self.post(&header, r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#);
    }

    /// Sends a request; returns the session id of the response.
    fn post(&mut self, headers: &str, body: &str) -> Option<String> {
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            self.host,
            body.len()
        );
        let stream = self.stream.get_mut();
        stream
            .write_all(request.as_bytes())
            .expect("the proxy reads");
        self.read_response()
    }

    fn read_response(&mut self) -> Option<String> {
        let (mut session, mut length, mut is_chunked) = (None, 0, false);
        let status = self.read_line();
        assert!(
            status.contains(" 200") || status.contains(" 202"),
            "{status}"
        );
        loop {
            let line = self.read_line();
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            match name.to_ascii_lowercase().as_str() {
                "mcp-session-id" => session = Some(value.trim().to_owned()),
                "content-length" => length = value.trim().parse().expect("the length is a number"),
                "transfer-encoding" => is_chunked = true,
                _ => {}
            }
        }
        if is_chunked {
            loop {
                let size =
                    usize::from_str_radix(&self.read_line(), 16).expect("the size is hexadecimal");
                self.skip(size + 2);
                if size == 0 {
                    break;
                }
            }
        } else {
            self.skip(length);
        }
        session
    }

    fn read_line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("the proxy answers");
        line.trim_end().to_owned()
    }

    fn skip(&mut self, bytes: usize) {
        let mut body = vec![0; bytes];
        self.stream
            .read_exact(&mut body)
            .expect("the proxy answers");
    }
}
