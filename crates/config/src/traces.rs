//! `[traces]`: the destination of the spans of calls.

use gateway::TraceSettings;

use super::{
    mistake::Fault,
    raw::RawTraces,
    template::{read_pairs, read_template},
};

/// `None`: spans are not sent.
pub(super) fn read_traces(raw: &RawTraces) -> Result<Option<TraceSettings>, (&'static str, Fault)> {
    let Some(endpoint) = &raw.endpoint else {
        if raw.headers.is_empty() {
            return Ok(None);
        }
        let hint = "set the collector: `endpoint = \"http://127.0.0.1:4318\"`";
        return Err(("headers", Fault::new("requires `endpoint`", hint)));
    };
    Ok(Some(TraceSettings {
        endpoint: read_template(endpoint).map_err(|fault| ("endpoint", fault))?,
        headers: read_pairs(&raw.headers).map_err(|fault| ("headers", fault))?,
    }))
}
