//! The session, the state, and the description of the API.

use daemon::status::DaemonStatus;
use serde::{Deserialize, Serialize};

use super::answer::Done;
use crate::{
    error::ApiError,
    limits::TOKEN_IDLE,
    live,
    openapi::OPENAPI,
    reply::Reply,
    routes::{Call, Nothing},
};

/// The code of an address that `proxy web` made.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Code {
    code: String,
}

/// A new session.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Session {
    /// For `Authorization: Bearer TOKEN`.
    token: String,
    /// The seconds without a request after which it ends.
    idle_s: u64,
}

/// The daemons of this configuration; the API of one answers for itself.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Status {
    /// The daemons.
    daemons: Vec<DaemonStatus>,
}

pub(crate) async fn describe(_: Call<Nothing, Nothing>) -> Result<Reply, ApiError> {
    Ok(Reply::Json(OPENAPI.to_vec()))
}

pub(crate) async fn begin(call: Call<Nothing, Code>) -> Result<Session, ApiError> {
    let token = call.page.entrance.trade(&call.body.code);
    let token = token.ok_or_else(|| {
        let why = "this address was used already, or is older than a minute";
        ApiError::unauthorized("code_used", why)
    })?;
    Ok(Session {
        token,
        idle_s: TOKEN_IDLE.as_secs(),
    })
}

pub(crate) async fn end(call: Call<Nothing, Nothing>) -> Result<Done, ApiError> {
    call.gone.cancel();
    Ok(Done::new("the session has ended"))
}

pub(crate) fn status(call: &Call<Nothing, Nothing>) -> Status {
    let daemons = vec![(call.page.daemon.status)()];
    Status { daemons }
}

pub(crate) async fn live(call: Call<Nothing, Nothing>) -> Result<Reply, ApiError> {
    Ok(Reply::live(live::follow(call.page, call.gone).await?))
}
