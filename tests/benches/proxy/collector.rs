//! A collector of spans that accepts every request and stores none.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    thread,
};

/// Listens until the bench ends; returns its address.
pub(crate) fn listen() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let address = listener.local_addr().expect("the socket is bound");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || take(stream));
        }
    });
    format!("http://{address}")
}

/// Serves one connection, one request after the other.
fn take(stream: TcpStream) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut length, mut line) = (0, String::new());
        while line != "\r\n" {
            line.clear();
            if stream.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        io::copy(&mut stream.by_ref().take(length), &mut io::sink())?;
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
        stream.get_mut().write_all(answer)?;
    }
}
