//! `traceparent` in the `_meta` of a request: its parent span.

use jsonrpc::Json;
use telemetry::otlp::TraceContext;

const PARENT: &str = "traceparent";

/// The members of `_meta` for a server, with this span as the parent of its spans.
pub(crate) fn with_parent(meta: &[(String, Json)], parent: TraceContext) -> Vec<(String, Json)> {
    let others = meta.iter().filter(|(key, _)| key != PARENT).cloned();
    let parent = Json::of_built(format!("\"{parent}\""));
    others.chain([(PARENT.to_owned(), parent)]).collect()
}

/// The parent span that a client's request names, if any.
pub(crate) fn parent_in(meta: &[(String, Json)]) -> Option<TraceContext> {
    let (_, parent) = meta.iter().find(|(key, _)| key == PARENT)?;
    let parent: String = serde_json::from_str(parent.as_str()).ok()?;
    TraceContext::parse(&parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_gets_our_span_in_place_of_its_clients() {
        let theirs = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let text = |text: &str| Json::of_built(format!("{text:?}"));
        let meta = vec![
            (PARENT.to_owned(), text(theirs)),
            ("tracestate".to_owned(), text("a=b")),
        ];
        assert_eq!(
            parent_in(&meta).map(|it| it.to_string()).as_deref(),
            Some(theirs)
        );
        let ours = "00-4bf92f3577b34da6a3ce929d0e0e4736-b7ad6b7169203331-01";
        let passed = with_parent(&meta, TraceContext::parse(ours).unwrap());
        let passed = passed
            .iter()
            .map(|(key, value)| format!("{key} {}", value.as_str()));
        let passed: Vec<String> = passed.collect();
        assert_eq!(
            passed,
            [
                "tracestate \"a=b\"".to_owned(),
                format!("{PARENT} \"{ours}\"")
            ]
        );
        for none in ["7", "{}", "\"nonsense\""] {
            let meta = [(PARENT.to_owned(), Json::of_built(none.to_owned()))];
            assert_eq!(parent_in(&meta), None, "{none}");
        }
    }
}
