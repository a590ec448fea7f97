//! The destination of the spans of calls, and their delivery.

use daemon::status::TraceStatus;
use gateway::Settings;
use setup::doctor::Check;

/// Reports that spans leave this machine, if `[traces]` is configured.
pub(super) fn check_configured(settings: &Settings) -> Option<Check> {
    let to = settings.traces.as_ref()?.origin();
    let to = to.unwrap_or_else(|| "an address with variables".to_owned());
    let found = format!("a span of each call goes to {to} (`[traces]`)");
    Some(Check::fine("traces", found))
}

/// Reports the delivery of spans from the status of a daemon.
pub(super) fn check_delivery(traces: &TraceStatus) -> Check {
    let counted = format!(
        "{} spans were sent, {} dropped",
        traces.sent, traces.dropped
    );
    let about = "traces of the daemon";
    if let Some(why) = &traces.failure {
        let found = format!("the last delivery failed: {why}; {counted}");
        let next = "start the collector, or correct `[traces]`";
        return Check::warning(about, found).then(next);
    }
    let found = if traces.last_at.is_none() {
        "no span was sent yet".to_owned()
    } else {
        format!("the last delivery succeeded; {counted}")
    };
    Check::fine(about, found)
}

#[cfg(test)]
mod tests {
    use daemon::status::TraceStatus;
    use setup::doctor::CheckVerdict;

    use super::check_delivery;

    #[test]
    fn a_delivery_that_failed_is_a_warning() {
        let told = |failure: Option<&str>, last_at: Option<u64>| {
            let check = check_delivery(&TraceStatus {
                sent: 7,
                dropped: 2,
                last_at,
                failure: failure.map(str::to_owned),
                to: None,
            });
            (check.verdict, check.found)
        };
        let (verdict, found) = told(Some("HTTP 404"), Some(1));
        assert_eq!(verdict, CheckVerdict::Warning);
        let counted = "7 spans were sent, 2 dropped";
        assert_eq!(
            found,
            format!("the last delivery failed: HTTP 404; {counted}")
        );
        let fine = (
            CheckVerdict::Fine,
            format!("the last delivery succeeded; {counted}"),
        );
        assert_eq!(told(None, Some(1)), fine);
        assert_eq!(told(None, None).1, "no span was sent yet");
    }
}
