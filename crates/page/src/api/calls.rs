//! Calls: the audit log, figures, results that were cut, and calls in flight.

use gateway::api::{Calls, CallsQuery, FiguresAnswer, FiguresQuery, list_calls, read_figures};
use serde::Deserialize;
use serde_json::json;

use super::{
    answer::Done,
    tools::{CallResult, run},
};
use crate::{
    error::ApiError,
    routes::{Call, Nothing},
};

/// A part of a result.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct PartQuery {
    /// Counted from 1.
    part: Option<u64>,
}

pub(crate) fn list(call: Call<CallsQuery, Nothing>) -> Result<Calls, ApiError> {
    Ok(list_calls(&call.page.daemon.gateway, call.query)?)
}

pub(crate) async fn figures(call: Call<FiguresQuery, Nothing>) -> Result<FiguresAnswer, ApiError> {
    Ok(read_figures(&call.page.daemon.gateway, call.query).await?)
}

pub(crate) async fn read_result(call: Call<PartQuery, Nothing>) -> Result<CallResult, ApiError> {
    let handle = &call.path[0];
    let part = call.query.part.unwrap_or(1);
    let input = json!({"handle": handle, "part": part});
    run(
        &call.page.daemon.gateway,
        "proxy/read_result",
        &input,
        false,
    )
    .await
}

pub(crate) async fn cancel(call: Call<Nothing, Nothing>) -> Result<Done, ApiError> {
    let id = call.path[0].parse().ok();
    let is_ended = id.is_some_and(|id| call.page.daemon.gateway.running_calls().end(id));
    if is_ended {
        return Ok(Done::new("the call was ended; it may have run"));
    }
    Err(ApiError::not_found("the call has ended already"))
}
