//! Spans in the JSON form of OTLP (`ExportTraceServiceRequest` of its version 1).
//!
//! Ids are hexadecimal there, and 64-bit integers are strings.

use serde_json::{Value as Json, json};

use crate::otlp::span::{Span, SpanKind, Value};

const UNSET: u8 = 0;
const ERROR: u8 = 2;

/// The attributes of the resource: this program, its version and this process.
pub(crate) type Attributes = Vec<(&'static str, Value)>;

/// Returns the body of a request with these spans.
pub(crate) fn write(about: &Attributes, spans: &[Span]) -> Vec<u8> {
    let spans: Vec<Json> = spans.iter().map(span_as_json).collect();
    let request = json!({"resourceSpans": [{
        "resource": {"attributes": attributes(about)},
        "scopeSpans": [{
            "scope": {"name": "proxy", "version": env!("CARGO_PKG_VERSION")},
            "spans": spans,
        }],
    }]});
    request.to_string().into_bytes()
}

fn span_as_json(span: &Span) -> Json {
    let kind = match span.kind {
        SpanKind::Internal => 1,
        SpanKind::Server => 2,
        SpanKind::Client => 3,
    };
    let mut json = json!({
        "traceId": hex::encode(span.context.trace),
        "spanId": hex::encode(span.context.span),
        // The lowest bit means that the span is sampled.
        "flags": u32::from(span.context.is_sampled),
        "name": span.name,
        "kind": kind,
        "startTimeUnixNano": span.began.to_string(),
        "endTimeUnixNano": span.ended.to_string(),
        "attributes": attributes(&span.attributes),
        "status": {"code": if span.is_error { ERROR } else { UNSET }},
    });
    if let Some(parent) = span.parent {
        json["parentSpanId"] = hex::encode(parent.span).into();
    }
    json
}

fn attributes(attributes: &[(&'static str, Value)]) -> Vec<Json> {
    let attribute = |(key, value): &(&'static str, Value)| {
        let value = match value {
            Value::Text(text) => json!({"stringValue": text}),
            Value::Number(number) => json!({"intValue": number.to_string()}),
            Value::Switch(switch) => json!({"boolValue": switch}),
        };
        json!({"key": key, "value": value})
    };
    attributes.iter().map(attribute).collect()
}

/// Returns the number of spans that a collector rejected, by its response; 0 if the response is
/// invalid.
pub(crate) fn read_rejected(body: &[u8]) -> u64 {
    let response: Json = serde_json::from_slice(body).unwrap_or_default();
    // A string by the specification; some collectors send a number.
    let rejected = &response["partialSuccess"]["rejectedSpans"];
    let text = rejected.as_str().and_then(|text| text.parse().ok());
    text.or_else(|| rejected.as_u64()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{read_rejected, write};
    use crate::otlp::{
        span::{Span, SpanKind},
        trace_context::TraceContext,
    };

    #[test]
    fn a_span_is_written_as_the_protocol_has_it() {
        let parent = "00-5b8efff798038103d269b633813fc60c-eee19b7ec3c1b173-01";
        let parent = TraceContext::parse(parent).unwrap();
        let span = Span {
            context: TraceContext {
                span: [0xee, 0xe1, 0x9b, 0x7e, 0xc3, 0xc1, 0xb1, 0x74],
                ..parent
            },
            parent: Some(parent),
            name: "tools/call echo".to_owned(),
            kind: SpanKind::Client,
            began: 1_544_712_660_000_000_000,
            ended: 1_544_712_661_000_000_000,
            is_error: true,
            attributes: vec![
                ("a.text", "b".into()),
                ("a.number", 7.into()),
                ("a.switch", true.into()),
            ],
        };
        let written = write(&vec![("service.name", "proxy".into())], &[span]);
        let written: serde_json::Value = serde_json::from_slice(&written).unwrap();
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(
            written,
            json!({"resourceSpans": [{
                "resource": {"attributes": [
                    {"key": "service.name", "value": {"stringValue": "proxy"}},
                ]},
                "scopeSpans": [{
                    "scope": {"name": "proxy", "version": version},
                    "spans": [{
                        "traceId": "5b8efff798038103d269b633813fc60c",
                        "spanId": "eee19b7ec3c1b174",
                        "parentSpanId": "eee19b7ec3c1b173",
                        "flags": 1,
                        "name": "tools/call echo",
                        "kind": 3,
                        "startTimeUnixNano": "1544712660000000000",
                        "endTimeUnixNano": "1544712661000000000",
                        "attributes": [
                            {"key": "a.text", "value": {"stringValue": "b"}},
                            {"key": "a.number", "value": {"intValue": "7"}},
                            {"key": "a.switch", "value": {"boolValue": true}},
                        ],
                        "status": {"code": 2},
                    }],
                }],
            }]})
        );
    }

    #[test]
    fn what_was_rejected_is_read_in_both_spellings() {
        for (body, rejected) in [
            ("{}", 0),
            ("", 0),
            ("not JSON", 0),
            (
                r#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"no"}}"#,
                3,
            ),
            (r#"{"partialSuccess":{"rejectedSpans":2}}"#, 2),
            (r#"{"partialSuccess":{"errorMessage":"fine, but"}}"#, 0),
        ] {
            assert_eq!(read_rejected(body.as_bytes()), rejected, "{body}");
        }
    }
}
