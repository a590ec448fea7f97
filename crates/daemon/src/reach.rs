//! Finds the daemon of our configuration, or starts it if there is none.

use std::path::PathBuf;

use anyhow::{Context as _, anyhow};
use tool::Digest;

use crate::{
    hello::{DaemonReply, Narrowing, Purpose, greet},
    identity::{Build, Identity},
    launch::{Report, connect_or_start},
    place::DaemonFolder,
    socket::Stream,
};

/// The number of attempts to reach another daemon after one has just exited.
const TRIES: usize = 8;

/// The daemon that we need, and its location.
#[derive(Debug)]
pub struct Route {
    /// The daemon's configuration and build.
    pub identity: Identity,
    /// The folder of its socket.
    pub place: DaemonFolder,
    /// The name of our client, in place of the one that it announces.
    pub client: Option<String>,
    /// The profile and the project of our client.
    pub narrowing: Narrowing,
}

/// The reason why there is no daemon.
#[derive(Debug)]
pub enum NoDaemon {
    /// The daemon reported an error.
    Reported(Report),
    /// It could not be started or reached.
    Failed(anyhow::Error),
}

impl<E: Into<anyhow::Error>> From<E> for NoDaemon {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

impl NoDaemon {
    /// Returns the error message, for people.
    pub fn to_text(&self) -> String {
        match self {
            Self::Reported(report) => report.text.clone(),
            Self::Failed(error) => format!("{error:#}"),
        }
    }
}

/// A daemon that was reached, and its answer.
#[derive(Debug)]
pub struct Reached {
    /// The stream after the answer.
    pub stream: Stream,
    /// The path of its socket.
    pub socket: PathBuf,
    /// The answer of the daemon.
    pub answer: DaemonReply,
    /// True if we started it.
    pub is_new: bool,
}

impl Reached {
    /// Prints a note if a log filter was given but the daemon already runs.
    pub(crate) fn warn_of_log_filter(&self, route: &Route, say: fn(&str)) {
        if route.identity.wanted.log.is_some() && !self.is_new {
            say(LOG_FILTER_IGNORED);
        }
    }
}

const LOG_FILTER_IGNORED: &str = "the running daemon keeps its log filter; to change it: `proxy daemon \
    restart --log FILTER`, or `serve --standalone`";

/// Sends our purpose to the daemon of our configuration and build, which is started if there is
/// none.
pub async fn reach(route: &Route, purpose: &Purpose) -> Result<Reached, NoDaemon> {
    let mut variant: Option<String> = None;
    for _ in 0..TRIES {
        let socket = route.place.socket(variant.as_deref());
        let (stream, output) = connect_or_start(&route.identity, &socket)
            .with_context(|| format!("no connection to the daemon at {}", socket.display()))?;
        let greeted = match stream {
            Some(stream) => greet(stream, purpose.clone()).await?,
            None => None,
        };
        match greeted {
            None => {
                if let Some(report) = output.and_then(Report::read) {
                    return Err(NoDaemon::Reported(report));
                }
            }
            Some((_, DaemonReply::OtherBuild { leaves: true, .. })) => {}
            Some((_, DaemonReply::OtherBuild { leaves: false, .. })) => {
                variant = Some(variant_of_build(variant.as_deref()));
            }
            Some((stream, answer)) => {
                return Ok(Reached {
                    stream,
                    socket,
                    answer,
                    is_new: output.is_some(),
                });
            }
        }
    }
    Err(anyhow!("every daemon ended in {TRIES} attempts; see `proxy daemon logs`").into())
}

/// Returns the name of another socket for our build: a newer daemon has the usual one.
fn variant_of_build(variant: Option<&str>) -> String {
    let build = format!("{:?} {variant:?}", Build::ours());
    Digest::of_bytes(build.as_bytes()).short(8)
}
