//! The other end of two pipes: a server, or the proxy. Uses plain blocking calls, to keep the
//! overhead of measuring small.

use std::{
    fs,
    hint::black_box,
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Instant,
};

use serde_json::Value;

/// More than the longest response: one is read in as few steps as the pipe allows.
const READ_BYTES: usize = 2 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Peer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    request: Vec<u8>,
    answer: Vec<u8>,
    next_id: u64,
}

/// The text of a call, without the id.
#[derive(Debug, Clone)]
pub(crate) struct PeerCall(String);

impl PeerCall {
    /// A call to the server itself.
    pub(crate) fn direct(tool: &str) -> Self {
        Self(format!(
            r#""method":"tools/call","params":{{"name":"{tool}","arguments":{{}}}}"#
        ))
    }

    /// A call to one of the proxy's three tools.
    pub(crate) fn of(tool: &str, arguments: &str) -> Self {
        Self(format!(
            r#""method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}"#
        ))
    }

    /// A call through the proxy; `options` are further members beside `tool_input`.
    pub(crate) fn through(tool: &str, options: &str) -> Self {
        let arguments = format!(r#"{{"tool_name":"{tool}","tool_input":{{}}{options}}}"#);
        Self::of("execute_dynamic_tool", &arguments)
    }
}

impl Peer {
    pub(crate) fn start(command: &mut Command) -> Self {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.spawn().expect("the program can be started");
        let input = child.stdin.take().expect("stdin is a pipe");
        let output = child.stdout.take().expect("stdout is a pipe");
        Self {
            child,
            input,
            output: BufReader::with_capacity(READ_BYTES, output),
            request: Vec::new(),
            answer: Vec::new(),
            next_id: 1,
        }
    }

    /// Starts it and performs the handshake.
    pub(crate) fn ready(command: &mut Command) -> Self {
        let mut peer = Self::start(command);
        peer.initialize();
        peer
    }

    pub(crate) fn initialize(&mut self) {
        self.ask(&PeerCall(
            r#""method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}"#
                .to_owned(),
        ));
        let done = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";
        self.input.write_all(done).expect("the peer reads");
    }

    pub(crate) fn list_tools(&mut self) -> usize {
        self.ask(&PeerCall(r#""method":"tools/list","params":{}"#.to_owned()))
            .len()
    }

    /// Sends a call and reads the response.
    pub(crate) fn ask(&mut self, call: &PeerCall) -> &[u8] {
        self.send(call);
        self.read()
    }

    /// Returns the microseconds that a call takes.
    pub(crate) fn time(&mut self, call: &PeerCall) -> f64 {
        let began = Instant::now();
        self.ask(call);
        began.elapsed().as_secs_f64() * 1e6
    }

    /// The same for a client that also parses the JSON, as real ones do.
    pub(crate) fn time_reading(&mut self, call: &PeerCall) -> f64 {
        let began = Instant::now();
        let answer: Value = serde_json::from_slice(self.ask(call)).expect("the answer is JSON");
        black_box(answer);
        began.elapsed().as_secs_f64() * 1e6
    }

    pub(crate) fn send(&mut self, call: &PeerCall) {
        let id = self.next_id;
        self.next_id += 1;
        self.request.clear();
        writeln!(self.request, r#"{{"jsonrpc":"2.0","id":{id},{}}}"#, call.0)
            .expect("the buffer grows");
        self.input.write_all(&self.request).expect("the peer reads");
    }

    pub(crate) fn read(&mut self) -> &[u8] {
        self.answer.clear();
        let read = self.output.read_until(b'\n', &mut self.answer);
        let length = read.expect("the peer can be read");
        assert!(length > 0, "the peer answers");
        &self.answer
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the kilobytes of a line of `/proc/PID/status`.
    pub(crate) fn memory_kb(&self, key: &str) -> u32 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = fs::read_to_string(path).expect("the peer runs");
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        let words = line.map(|line| line.trim_start_matches(':').split_whitespace());
        words
            .and_then(|mut words| words.next()?.parse().ok())
            .expect("the system reports the memory of a process")
    }

    /// Closes its stdin and waits until it has exited.
    pub(crate) fn end(self) {
        let Self {
            mut child,
            input,
            output,
            ..
        } = self;
        drop(input);
        let status = child.wait().expect("the process is our child");
        drop(output);
        assert!(status.success(), "it ended with {status}");
    }
}
