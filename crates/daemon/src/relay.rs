//! `proxy serve`: a client on our stdin and stdout, the daemon behind a socket, and lines passed
//! between them.
//!
//! It keeps only the state that is needed to continue with another daemon when this one is lost.

mod deaths;
mod pending;

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::anyhow;
use bytes::Bytes;
use fleet::Variables;
use gateway::{shorten_home_paths, stdio};
use jsonrpc::{Line, LineReader, Outbox, Sink, answered_id};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use self::{
    deaths::Deaths,
    pending::{Pending, error_answer},
};
use super::{
    hello::{CLIENT_VARIABLE, DaemonReply, Purpose},
    reach::{NoDaemon, Route, reach},
    socket::{InputEnd, Stream, split},
};

/// The number of times that a killed daemon that served HTTP is restarted before the client's next
/// message: one that fails by itself would be restarted for ever. The count is reset after a long
/// run.
const RESTARTS_MAX: u32 = 3;
const LONG_LIFE: Duration = Duration::from_mins(1);

/// The wait after the client's end of input for the daemon to answer pending requests and close.
const END_WAIT: Duration = Duration::from_secs(3);

/// An open session with a daemon.
#[derive(Debug)]
struct Link {
    lines: LineReader,
    outbox: Arc<Outbox>,
    /// Ends our input to the daemon.
    end: InputEnd,
    /// The path of the daemon's socket.
    socket: PathBuf,
    /// True if clients may also connect over HTTP; they cannot start a daemon.
    serves_http: bool,
    since: Instant,
}

impl Link {
    fn new(stream: Stream, socket: PathBuf, serves_http: bool) -> std::io::Result<Self> {
        let (input, output, end) = split(stream)?;
        Ok(Self {
            lines: LineReader::new(input),
            outbox: Outbox::new(Sink::Pipe(output)),
            end,
            socket,
            serves_http,
            since: Instant::now(),
        })
    }

    /// Waits for the next line of the daemon, until there is room for it. A broken connection counts as its
    /// end.
    async fn next(&mut self, output: &Outbox) -> Option<Line> {
        output.room().await;
        self.lines.next().await.unwrap_or(None)
    }

    /// Returns true if the daemon must be restarted although our client asks nothing. A daemon that was
    /// stopped has removed its socket; one that was killed has not.
    fn is_missed(&self) -> bool {
        self.serves_http && self.socket.exists()
    }
}

impl Drop for Link {
    /// Closes the outbox, whose task would keep the socket open.
    fn drop(&mut self) {
        self.outbox.give_up();
    }
}

/// Serves our client until either end is gone. Fails if no daemon can be reached at the start;
/// nothing was read from the client then. `say` is for people, and never prints to stdout.
pub async fn relay(route: Route, say: fn(&str), stop: CancellationToken) -> Result<(), NoDaemon> {
    let link = open(&route, say).await?;
    let mut relay = Relay {
        route,
        say,
        client: LineReader::new(stdio::input()),
        output: Outbox::new(stdio::output()),
        pending: Pending::default(),
        link: Some(link),
        restarts: 0,
        deaths: Deaths::default(),
    };
    stop.run_until_cancelled(relay.run()).await;
    let _ = timeout(END_WAIT, relay.output.drained()).await;
    Ok(())
}

struct Relay {
    route: Route,
    /// Prints a message for people, outside the protocol.
    say: fn(&str),
    client: LineReader,
    output: Arc<Outbox>,
    pending: Pending,
    /// None from the loss of a daemon until the client sends something.
    link: Option<Link>,
    /// The number of times a daemon was started although no request was open.
    restarts: u32,
    deaths: Deaths,
}

enum Event {
    FromDaemon(Option<Line>),
    FromClient(Option<Line>),
}

impl Relay {
    async fn run(&mut self) {
        let output = Arc::clone(&self.output);
        let mut gone = std::pin::pin!(output.gone());
        loop {
            let event = tokio::select! {
                biased;
                () = &mut gone => return,
                event = self.next() => event,
            };
            match event {
                Event::FromDaemon(Some(line)) => self.pass_to_client(line),
                Event::FromDaemon(None) => self.handle_loss().await,
                Event::FromClient(Some(line)) => self.pass_to_daemon(line).await,
                Event::FromClient(None) => return self.finish().await,
            }
        }
    }

    /// Waits for the next event. A line is only read if it can be passed on: a peer that does not read
    /// blocks its own senders, and no others.
    async fn next(&mut self) -> Event {
        let output = &self.output;
        let up = self.link.as_ref().map(|link| Arc::clone(&link.outbox));
        let from_daemon = async {
            match &mut self.link {
                Some(link) => link.next(output).await,
                None => std::future::pending().await,
            }
        };
        let from_client = async {
            if let Some(up) = &up {
                up.room().await;
            }
            self.client.next().await.unwrap_or(None)
        };
        tokio::select! {
            biased;
            line = from_daemon => Event::FromDaemon(line),
            line = from_client => Event::FromClient(line),
        }
    }

    fn pass_to_client(&mut self, line: Line) {
        self.deaths.record_message();
        match line {
            Line::Whole(line) => {
                if self.pending.record_daemon_line(&line) {
                    self.send_to_client(&[line, Bytes::from_static(b"\n")]);
                }
            }
            Line::TooLong { head, bytes } => {
                self.pending.record_daemon_line(&head);
                if let Some(id) = answered_id(&head) {
                    let why = format!("the answer has {bytes} bytes in one line, over the cap");
                    self.send_to_client(&[error_answer(id, &why)]);
                }
            }
        }
    }

    async fn pass_to_daemon(&mut self, line: Line) {
        let line = match line {
            Line::Whole(line) => line,
            Line::TooLong { bytes, .. } => {
                let why = format!("Parse error: a line of {bytes} bytes is too long");
                return self.send_to_client(&[error_answer("null", &why)]);
            }
        };
        self.restarts = 0;
        let opened = match &self.link {
            Some(_) => Ok(()),
            None => self.reopen().await,
        };
        self.pending.record_client_line(&line);
        if let Err(why) = opened {
            self.refuse(&why);
        } else if let Some(link) = &self.link {
            // A broken link is detected by its reader.
            let _ = link.outbox.put(&[line, Bytes::from_static(b"\n")]);
        }
    }

    /// Handles the loss of the daemon. Running calls are answered; a new daemon is started if a request
    /// is pending, or if HTTP clients, which cannot start one, need it.
    async fn handle_loss(&mut self) {
        let link = self.link.take();
        self.deaths.record_death();
        let mut is_missed = false;
        if let Some(link) = link {
            if link.since.elapsed() > LONG_LIFE {
                self.restarts = 0;
            }
            is_missed = self.restarts < RESTARTS_MAX && link.is_missed();
        }
        self.restarts += u32::from(is_missed);
        let cancelled = self.pending.cancel_daemon_requests();
        for line in cancelled.into_iter().chain(self.pending.answer_lost()) {
            self.send_to_client(&[line]);
        }
        if (self.pending.has_open_requests() || is_missed)
            && let Err(why) = self.reopen().await
        {
            self.refuse(&why);
        }
    }

    async fn reopen(&mut self) -> Result<(), String> {
        self.deaths.check()?;
        let link = open(&self.route, self.say).await;
        let link = link.map_err(|none| none.to_text());
        let link = link.inspect_err(|why| (self.say)(why))?;
        for line in self.pending.replay() {
            let _ = link.outbox.put(&[line, Bytes::from_static(b"\n")]);
        }
        self.link = Some(link);
        for line in self.pending.notify_resources() {
            self.send_to_client(&[line]);
        }
        Ok(())
    }

    fn refuse(&mut self, why: &str) {
        let why = shorten_home_paths(why);
        let why = format!("error server_unavailable: the proxy's daemon cannot be started: {why}");
        for answer in self.pending.refuse_all(&why) {
            self.send_to_client(&[answer]);
        }
    }

    /// There was room before the line was read.
    fn send_to_client(&self, parts: &[Bytes]) {
        let _ = self.output.put(parts);
    }

    /// Handles the client's end of input: the daemon answers pending requests.
    async fn finish(&mut self) {
        let Some(link) = &mut self.link else {
            return;
        };
        link.outbox.drained().await;
        let closes = link.end.end();
        let _ = timeout(END_WAIT, async {
            // A daemon that cannot see the end of our input does not close the connection.
            while (closes || self.pending.has_open_requests())
                && let Some(link) = &mut self.link
                && let Some(line) = link.next(&self.output).await
            {
                self.pass_to_client(line);
            }
        })
        .await;
    }
}

/// Opens a session with the daemon of our configuration and build, which is started if there is
/// none.
async fn open(route: &Route, say: fn(&str)) -> Result<Link, NoDaemon> {
    let mut variables = Variables::of_process();
    if let Some(name) = &route.client {
        variables.set(CLIENT_VARIABLE, name);
    }
    let purpose = Purpose::Session {
        cwd: std::env::current_dir().ok(),
        variables,
        narrowing: route.narrowing.clone(),
    };
    let reached = reach(route, &purpose).await?;
    reached.warn_of_log_filter(route, say);
    match reached.answer {
        DaemonReply::Welcome { serves_http } => {
            Ok(Link::new(reached.stream, reached.socket, serves_http)?)
        }
        DaemonReply::Refused(report) => Err(NoDaemon::Reported(report)),
        other => Err(anyhow!("the daemon answered with {other:?}").into()),
    }
}
