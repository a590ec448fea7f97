//! The destination of the spans of calls, and their delivery.

use gateway::Settings;
use serde_json::Value;
use setup::doctor::Check;

/// Reports that spans leave this machine, if `[traces]` is configured.
pub(super) fn check_configured(settings: &Settings) -> Option<Check> {
    let to = settings.traces.as_ref()?.origin();
    let to = to.unwrap_or_else(|| "an address with variables".to_owned());
    let found = format!("a span of each call goes to {to} (`[traces]`)");
    Some(Check::fine("traces", found))
}

/// Reports the delivery of spans from the status of a daemon.
pub(super) fn check_delivery(told: &Value) -> Option<Check> {
    let (sent, dropped) = (told["sent"].as_u64()?, told["dropped"].as_u64()?);
    let counted = format!("{sent} spans were taken, {dropped} dropped");
    let about = "traces of the daemon";
    if let Some(why) = told["failure"].as_str() {
        let found = format!("the last delivery failed: {why}; {counted}");
        let next = "start the collector, or mend `[traces]`";
        return Some(Check::warning(about, found).then(next));
    }
    let found = if told["last_at"].is_null() {
        "there was no span to send yet".to_owned()
    } else {
        format!("the last delivery was taken; {counted}")
    };
    Some(Check::fine(about, found))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use setup::doctor::Verdict;

    use super::check_delivery;

    #[test]
    fn a_delivery_that_failed_is_a_warning() {
        let told = |failure: Option<&str>, last_at: Option<u64>| {
            let told = json!({"sent": 7, "dropped": 2, "failure": failure, "last_at": last_at});
            let check = check_delivery(&told).unwrap();
            (check.verdict, check.found)
        };
        let (verdict, found) = told(Some("HTTP 404"), Some(1));
        assert_eq!(verdict, Verdict::Warning);
        let counted = "7 spans were taken, 2 dropped";
        assert_eq!(
            found,
            format!("the last delivery failed: HTTP 404; {counted}")
        );
        let fine = (
            Verdict::Fine,
            format!("the last delivery was taken; {counted}"),
        );
        assert_eq!(told(None, Some(1)), fine);
        assert_eq!(told(None, None).1, "there was no span to send yet");
        assert_eq!(check_delivery(&json!(null)), None);
    }
}
