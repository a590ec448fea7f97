//! The way to the daemon that we mean: found, or started where there is none.

use anyhow::{Context as _, anyhow};
use tokio::net::UnixStream;
use tool::Digest;

use crate::{
    hello::{Answer, Purpose, greet},
    identity::{Build, Identity},
    launch::{Report, connect_or_start},
    place::Place,
};

/// The number of times that a daemon that just left is followed by a look for another.
const TRIES: usize = 8;

/// The daemon that we want, and where it is.
#[derive(Debug)]
pub struct Route {
    /// The daemon's configuration and build.
    pub identity: Identity,
    /// The folder of its socket.
    pub place: Place,
}

/// The reason why there is no daemon.
#[derive(Debug)]
pub enum NoDaemon {
    /// It said so itself.
    Said(Report),
    /// It could not be started or reached.
    Failed(anyhow::Error),
}

impl<E: Into<anyhow::Error>> From<E> for NoDaemon {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

impl NoDaemon {
    /// Told to people.
    pub fn to_text(&self) -> String {
        match self {
            Self::Said(report) => report.text.clone(),
            Self::Failed(error) => format!("{error:#}"),
        }
    }
}

/// A daemon that was reached, and its answer.
#[derive(Debug)]
pub struct Reached {
    /// What follows the answer.
    pub stream: UnixStream,
    /// What it said.
    pub answer: Answer,
    /// We started it.
    pub is_new: bool,
}

impl Reached {
    /// Tells whoever asked for another log of a daemon that runs already.
    pub(crate) fn say_log_comes_late(&self, route: &Route, say: fn(&str)) {
        if route.identity.wanted.log.is_some() && !self.is_new {
            say(LOG_COMES_LATE);
        }
    }
}

const LOG_COMES_LATE: &str = "the daemon runs already and logs as it was told to; for another log: \
                              `proxy daemon restart --log FILTER`, or `serve --standalone`";

/// Says what we want to the daemon of our configuration and build, which is started if there is
/// none.
pub async fn reach(route: &Route, purpose: &Purpose) -> Result<Reached, NoDaemon> {
    let mut variant: Option<String> = None;
    for _ in 0..TRIES {
        let socket = route.place.socket(variant.as_deref());
        let connection = connect_or_start(&route.identity, &socket)
            .with_context(|| format!("no connection to the daemon at {}", socket.display()))?;
        let stream = connection.stream.try_clone()?;
        match greet(stream, purpose.clone()).await? {
            None => {
                if let Some(report) = connection.report() {
                    return Err(NoDaemon::Said(report));
                }
            }
            Some((_, Answer::OtherBuild { leaves: true, .. })) => {}
            Some((_, Answer::OtherBuild { leaves: false, .. })) => {
                variant = Some(variant_of_build(variant.as_deref()));
            }
            Some((stream, answer)) => {
                return Ok(Reached {
                    stream,
                    answer,
                    is_new: connection.is_of_a_new_daemon(),
                });
            }
        }
    }
    Err(anyhow!("no daemon of ours stayed in {TRIES} tries; see `proxy daemon logs`").into())
}

/// A newer daemon holds our place: we meet ours at another.
fn variant_of_build(variant: Option<&str>) -> String {
    let build = format!("{:?} {variant:?}", Build::ours());
    Digest::of_bytes(build.as_bytes()).short(8)
}
