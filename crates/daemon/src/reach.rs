//! Finds the daemon of our configuration, or starts it if there is none.

use std::path::PathBuf;

use anyhow::{Context as _, anyhow};
use tool::Digest;

use crate::{
    hello::{DaemonReply, Narrowing, Purpose},
    identity::{Build, Identity},
    launch::{Report, connect_or_start},
    place::DaemonFolder,
    running::RunningDaemon,
    socket::{BlockingStream, Stream, connect},
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
        let (socket, (stream, output)) = match find_owner(route, variant.as_deref())? {
            Some((socket, stream)) => (socket, (Some(stream), None)),
            None => {
                let socket = route.place.socket(variant.as_deref());
                let connected = connect_or_start(&route.identity, &socket).with_context(|| {
                    format!("no connection to the daemon at {}", socket.display())
                })?;
                (socket, connected)
            }
        };
        let greeted = match stream {
            Some(stream) => {
                let daemon = RunningDaemon::new(stream, socket.clone(), &route.place);
                daemon.greet(purpose.clone()).await?
            }
            None => None,
        };
        match greeted {
            None => {
                // The next attempt finds the daemon that owns the state folder.
                if let Some(report) = output.and_then(Report::read).filter(|it| !it.is_owned) {
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
    Err(anyhow!(
        "every daemon ended in {TRIES} attempts; `proxy logs` prints its log, `proxy daemon restart` starts \
         another"
    )
    .into())
}

/// Connects to the daemon that owns our state folder, if it is not at our own place: it was started with
/// another `HOME` or `XDG_RUNTIME_DIR`. `variant` is the name of another socket for our build.
///
/// # Errors
///
/// The daemon has other variables.
fn find_owner(
    route: &Route,
    variant: Option<&str>,
) -> Result<Option<(PathBuf, BlockingStream)>, NoDaemon> {
    let owner = route.place.find_owner().filter(|_| variant.is_none());
    let Some(owner) = owner.filter(|it| it.socket != route.place.socket(None)) else {
        return Ok(None);
    };
    // Without a daemon there, ours takes the folder.
    let Ok(Some(stream)) = connect(&owner.socket) else {
        return Ok(None);
    };
    let checked = owner.check_settings(&route.identity);
    checked.map_err(|why| NoDaemon::Failed(anyhow!(why)))?;
    Ok(Some((owner.socket, stream)))
}

/// Returns the name of another socket for our build: a newer daemon has the usual one.
fn variant_of_build(variant: Option<&str>) -> String {
    let build = format!("{:?} {variant:?}", Build::ours());
    Digest::of_bytes(build.as_bytes()).short(8)
}
